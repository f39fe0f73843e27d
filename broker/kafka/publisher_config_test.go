package kafka

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"
)

func TestConfigurationSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := NewPublisher(Cluster{
		Brokers: []string{"kafka://user:hunter2@host"}, TLS: &tls.Config{InsecureSkipVerify: true},
	}, PublisherConfig{Prefix: "a b", Depth: -1, Timeout: -time.Second, MaxMessageBytes: 10, Compression: "rar"})
	if err == nil {
		t.Fatal("it was taken")
	}
	for _, want := range []string{
		"host:port", "InsecureSkipVerify", "Prefix", "Depth", "Timeout", "MaxMessageBytes", "Compression",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing about %s in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password is in: %v", err)
	}
	if _, err := NewPublisher(Cluster{}, PublisherConfig{}); err == nil || !strings.Contains(err.Error(), "Brokers") {
		t.Errorf("no broker: %v", err)
	}
}

func TestTopicNames(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"orders": true, "shop.orders_v1-eu": true, strings.Repeat("a", 249): true,
		"": false, ".": false, "..": false, "a b": false, "a/b": false, strings.Repeat("a", 250): false, "größe": false,
	} {
		if err := CheckTopic(name); (err == nil) != good {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

// TestPlainTextStaysOnThisMachine: whatever broker the cluster names, elsewhere it is spoken to in TLS.
func TestPlainTextStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	for host, local := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "kafka.example.com": false, "10.0.0.1": false,
		"localhost.example.com": false, "": false,
	} {
		if onThisMachine(host) != local {
			t.Errorf("%s is on this machine: %v", host, !local)
		}
	}
}
