package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kafka is a node of its own, broker and controller in one, whose topics survive its death.
type Kafka struct {
	*Server
	java, libs, data, settings string
}

// Java for what is short-lived or does little: the first tier of the compiler and one thread for the garbage halve
// what a start costs.
var shortJava = []string{"-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN"}

// NewKafka prepares a node with these settings besides its own, and does not start it. It has a listener CLIENTS
// without a login at the server's address; more is added to listeners, and must be advertised.
func NewKafka(folder string, listeners []KafkaListener, settings ...string) (*Kafka, error) {
	libs, err := kafkaLibs()
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("server: %w: run services/services up kafka", err)
	}
	clients, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	controller, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	k := &Kafka{
		java: java, libs: libs, data: filepath.Join(folder, "kafka"), settings: filepath.Join(folder, "properties"),
	}
	listen := []string{"CLIENTS://" + clients, "CONTROLLER://" + controller}
	advertise, protocols := []string{listen[0], listen[1]}, []string{"CLIENTS:PLAINTEXT", "CONTROLLER:PLAINTEXT"}
	for _, l := range listeners {
		listen = append(listen, l.Name+"://"+l.Address)
		advertise = append(advertise, l.Name+"://"+l.Advertised)
		protocols = append(protocols, l.Name+":"+l.Protocol)
	}
	lines := append([]string{
		"process.roles=broker,controller", "node.id=1", "controller.quorum.bootstrap.servers=" + controller,
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=CLIENTS",
		"listeners=" + strings.Join(listen, ","), "advertised.listeners=" + strings.Join(advertise, ","),
		"listener.security.protocol.map=" + strings.Join(protocols, ","), "log.dirs=" + k.data,
		"auto.create.topics.enable=false", "num.network.threads=2", "num.io.threads=4",
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
		"transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0",
	}, settings...)
	if err := os.WriteFile(k.settings, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	k.Server = &Server{
		Name: "kafka", Address: clients, Log: filepath.Join(folder, "kafka.log"), Program: java,
		Args: k.command("kafka.Kafka", k.settings),
	}
	return k, k.format()
}

// KafkaListener is a door of a node. Clients go on to what is advertised, so a proxy may stand there.
type KafkaListener struct{ Name, Address, Advertised, Protocol string }

func (k *Kafka) command(class string, more ...string) []string {
	args := append([]string(nil), shortJava...)
	return append(append(args, "-cp", filepath.Join(k.libs, "*"), class), more...)
}

// format makes the storage, without which a node does not start.
func (k *Kafka) format() error {
	args := k.command("kafka.tools.StorageTool", "format", "--standalone", "--cluster-id", "cG9zdGhhc3RlLXNlcnZpYw",
		"--config", k.settings)
	out, err := exec.Command(k.java, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("server: the storage of kafka: %w: %s", err, out)
	}
	return nil
}

// kafkaLibs finds the jars that services/services installs, in the version that it pins.
func kafkaLibs() (string, error) {
	settings, err := fileAbove("services/settings.env")
	if err != nil {
		return "", err
	}
	_, version, _ := strings.Cut(settings, "\nVERSION_KAFKA=")
	version, _, _ = strings.Cut(version, "\n")
	for _, folder := range Tools() {
		libs := filepath.Join(folder, "kafka-"+version, "libs")
		if _, err := os.Stat(libs); err == nil {
			return libs, nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("server: %w", err)
		}
	}
	return "", fmt.Errorf("server: there is no kafka %s: run services/services up kafka", version)
}
