package proxy_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// echo is a server that says every line again, and tells what it heard.
func echo(t *testing.T) (address string, heard <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 100)
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				for reader := bufio.NewReader(conn); ; {
					line, err := reader.ReadString('\n')
					if err != nil {
						return
					}
					lines <- line
					if _, err := conn.Write([]byte(line)); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return listener.Addr().String(), lines
}

// client speaks in lines.
type client struct {
	net.Conn
	t *testing.T
}

func dial(t *testing.T, p *proxy.Proxy) *client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(eventually.Patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{conn, t}
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := c.Write([]byte(line + "\n")); err != nil {
		c.t.Fatal(err)
	}
}

// hears wants this from the server.
func (c *client) gets(line string) {
	c.t.Helper()
	got := make([]byte, len(line)+1)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != line+"\n" {
		c.t.Fatalf("%q, %v, want %q", got, err, line)
	}
}

// ends wants the end of the connection, and nothing before it.
func (c *client) ends() {
	c.t.Helper()
	n, err := c.Read(make([]byte, 1))
	if timeout, ok := err.(net.Error); n > 0 || err == nil || ok && timeout.Timeout() { //nolint:errorlint // it is one
		c.t.Fatalf("%d bytes and %v in place of the end", n, err)
	}
}

func TestItCarriesLeadsAndCounts(t *testing.T) {
	t.Parallel()
	first, _ := echo(t)
	second, heard := echo(t)
	p := proxy.New(t, "tcp://"+first)
	p.Count("two")
	one := dial(t, p)
	one.say("one two two")
	one.gets("one two two")
	if p.Counted() != 2 || p.Accepted() != 1 {
		t.Errorf("counted %d, accepted %d", p.Counted(), p.Accepted())
	}
	p.Lead(t, second)
	two := dial(t, p)
	two.say("hello")
	two.gets("hello")
	if got := eventually.Receive(t, "the second server hears it", heard); got != "hello\n" {
		t.Error(got)
	}
	if got, want := p.Through(t, "nats://a:b@example.com:4222/x"), "nats://a:b@"+p.Address()+"/x"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p.HangUp()
	one.ends()
	two.ends()
}

func TestItBlocksAndHeals(t *testing.T) {
	t.Parallel()
	server, _ := echo(t)
	p := proxy.New(t, server)
	old := dial(t, p)
	old.say("1")
	old.gets("1")
	p.Block()
	old.ends()
	dial(t, p).ends()
	eventually.True(t, "it counts", func() bool { return p.Blocked() == 1 })
	p.Heal()
	c := dial(t, p)
	c.say("2")
	c.gets("2")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	reach := map[proxy.Fault]bool{proxy.LoseRequest: false, proxy.HangUp: true, proxy.LoseAnswer: true}
	for fault, arrives := range reach {
		server, heard := echo(t)
		p := proxy.New(t, server)
		p.At("commit", fault)
		c := dial(t, p)
		c.say("begin")
		c.gets("begin")
		if got := <-heard; got != "begin\n" || p.Faults() != 0 {
			t.Errorf("%s: %q, %d faults", fault, got, p.Faults())
		}
		c.say("commit")
		c.ends()
		if p.Faults() != 1 {
			t.Errorf("%s: %d faults", fault, p.Faults())
		}
		if arrives {
			if got := eventually.Receive(t, "the server has it", heard); got != "commit\n" {
				t.Errorf("%s: %q", fault, got)
			}
		}
		again := dial(t, p)
		again.say("commit once more")
		again.gets("commit once more")
		if got := <-heard; !strings.Contains(got, "once more") {
			t.Errorf("%s: the server heard %q", fault, got)
		}
	}
}

func TestItMutes(t *testing.T) {
	t.Parallel()
	server, heard := echo(t)
	p := proxy.New(t, server)
	p.Mute("settle")
	c := dial(t, p)
	c.say("settle")
	c.say("more")
	for _, want := range []string{"settle\n", "more\n"} {
		if got := eventually.Receive(t, "the server has it", heard); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p.Heal()
	c.ends()
}

func TestItHoldsAndDrops(t *testing.T) {
	t.Parallel()
	server, heard := echo(t)
	p := proxy.New(t, server)
	c := dial(t, p)
	p.Hold(true)
	c.say("later")
	<-heard
	if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("it was not held")
	}
	if err := c.SetReadDeadline(time.Now().Add(eventually.Patience)); err != nil {
		t.Fatal(err)
	}
	p.Hold(false)
	c.gets("later")
	p.Drop(true)
	c.say("lost")
	<-heard
	p.HangUp()
	c.ends()
	p.Drop(false)
	again := dial(t, p)
	again.say("not lost")
	again.gets("not lost")
}

func TestItLimits(t *testing.T) {
	t.Parallel()
	server, _ := echo(t)
	p := proxy.New(t, server)
	p.Limit(10)
	c := dial(t, p)
	for range 3 { // each answer counts by itself
		c.say("short")
		c.gets("short")
	}
	c.say("longer than that")
	c.ends()
	if p.TooLong() != 1 {
		t.Error(p.TooLong())
	}
}

func TestParsing(t *testing.T) {
	t.Parallel()
	server, _ := echo(t)
	p := proxy.Parsing(t, server, func(to io.Writer, from io.Reader) {
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			if _, err := to.Write([]byte(strings.ToUpper(scanner.Text()) + "\n")); err != nil {
				return
			}
		}
	})
	c := dial(t, p)
	c.say("aloud")
	c.gets("ALOUD")
}
