package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

const (
	// provenFor is how long a password that was right needs no new proof, counted from its last use.
	provenFor = 15 * time.Minute
	// mostProven bounds the memory.
	mostProven = 1024
)

// proof stands for a name, a password and what the file had of it. It is made with a key that only this process has,
// so nobody who reads its memory later can test passwords faster than with the file.
type proof [sha256.Size]byte

// proven remembers which passwords were right. A console asks for one with every request, and each proof is meant to
// be slow; besides, who was let in already is not locked out by the failures of a neighbour with the same address.
type proven struct {
	key [32]byte
	now func() time.Time

	mu      sync.Mutex
	right   *fading[proof, struct{}]
	pending map[proof]*pending
}

// pending is a proof in the making. A browser sends many requests at once, and they wait for one proof.
type pending struct {
	done   chan struct{}
	denial *Denial
}

func newProven(now func() time.Time) *proven {
	p := &proven{now: now, right: newFading[proof, struct{}](mostProven), pending: map[proof]*pending{}}
	_, _ = rand.Read(p.key[:]) // never fails
	return p
}

// of names what is to be proven. A changed entry of the file is another one.
func (p *proven) of(name, password, hash string) (made proof) {
	mac := hmac.New(sha256.New, p.key[:])
	for _, part := range []string{name, password, hash} {
		_, _ = mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = mac.Write([]byte(part))
	}
	mac.Sum(made[:0])
	return made
}

// check returns nil at once for what was proven, waits for who is at it, or does it.
func (p *proven) check(what proof, prove func() *Denial) *Denial {
	p.mu.Lock()
	now := p.now()
	if _, _, ok := p.right.get(what, now); ok {
		p.right.put(what, struct{}{}, now.Add(provenFor), now)
		p.mu.Unlock()
		return nil
	}
	if other, ok := p.pending[what]; ok {
		p.mu.Unlock()
		<-other.done
		return other.denial
	}
	mine := &pending{done: make(chan struct{}), denial: unprovable()}
	p.pending[what] = mine
	p.mu.Unlock()

	defer func() { // also where prove panics: nobody may wait forever, or be let in
		p.mu.Lock()
		delete(p.pending, what)
		if mine.denial == nil {
			now := p.now()
			p.right.put(what, struct{}{}, now.Add(provenFor), now)
		}
		p.mu.Unlock()
		close(mine.done)
	}()
	mine.denial = prove()
	return mine.denial
}
