package proxy

import (
	"bytes"
	"net"
)

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.accepted++
		address := p.server
		p.mu.Unlock()
		server, err := net.Dial("tcp", address)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		if !p.admit(l) {
			l.hangUp()
			continue
		}
		p.group.Go(func() { p.carryRequests(l) })
		p.group.Go(func() { p.carry(l, l.server, p.answer) })
	}
}

func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocking {
		p.blocked++
		return false
	}
	p.links[l] = true
	return true
}

func (p *Proxy) forget(l *link) {
	l.hangUp()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) carryRequests(l *link) {
	if p.requests == nil {
		p.carry(l, l.client, p.request)
		return
	}
	defer p.forget(l)
	p.requests(l.server, l.client)
}

// carry moves bytes one way until the connection ends.
func (p *Proxy) carry(l *link, from net.Conn, pass func(*link, []byte) bool) {
	defer p.forget(l)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !pass(l, buffer[:n]) || err != nil {
			return
		}
	}
}

// request carries what a client says. False: the connection ends.
func (p *Proxy) request(l *link, said []byte) bool {
	fault := p.observe(l, said)
	if fault == LoseRequest {
		return false
	}
	if p.swallows() {
		return true
	}
	_, err := l.server.Write(said)
	return err == nil && fault != HangUp
}

func (p *Proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.swallow
}

// observe looks at what a client says.
func (p *Proxy) observe(l *link, said []byte) (fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.answered = 0
	if p.countAt != "" {
		p.counted += bytes.Count(said, []byte(p.countAt))
	}
	if p.muteAt != "" && bytes.Contains(said, []byte(p.muteAt)) {
		l.muted = true
	}
	if p.fault == None || !bytes.Contains(said, []byte(p.faultAt)) {
		return None
	}
	fault, p.fault = p.fault, None
	p.faults++
	l.muted, l.ends = true, fault == LoseAnswer
	return fault
}

// answer carries what the server says. False: the connection ends.
func (p *Proxy) answer(l *link, said []byte) bool {
	goesOn, ends := p.weigh(l, len(said))
	if ends || !goesOn {
		return !ends
	}
	_, err := l.client.Write(said)
	return err == nil
}

// weigh waits while answers are held, and tells whether one goes on, and whether the connection ends.
func (p *Proxy) weigh(l *link, size int) (goesOn, ends bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held && !p.ended {
		p.changed.Wait()
	}
	if l.muted || p.dropped {
		return false, l.ends
	}
	l.answered += size
	if p.limit > 0 && l.answered > p.limit {
		p.tooLong++
		return false, true
	}
	return true, false
}
