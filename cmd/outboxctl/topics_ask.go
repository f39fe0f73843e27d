package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/internal/program"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/outbox"
)

// topicsTestCommand asks the broker about topics.
type topicsTestCommand struct {
	root      *rootCommand
	config    string
	topic     string
	all, send bool
}

// topicTest is what is printed about one topic.
type topicTest struct {
	Topic    string            `json:"topic"`
	Broker   string            `json:"broker"`
	OK       bool              `json:"ok"`
	Findings []topicTestDetail `json:"findings,omitempty"`
	// Sent is the id of the test message that the broker took.
	Sent string `json:"sent,omitempty"`
}

type topicTestDetail struct {
	Code string `json:"code"`
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
}

// newTopicsTest asks whether the broker would take a message.
func newTopicsTest(root *rootCommand) *cobra.Command {
	c := &topicsTestCommand{root: root}
	cmd := root.show(&cobra.Command{
		Use:   "test TOPIC | --all",
		Short: "Ask the broker whether it would take a message on a topic",
		Long: `Ask the broker of outbox-publisher, from this machine and with its configuration (--config FILE,
POSTHASTE_CONFIG, or POSTHASTE_BROKER and other variables), whether a topic is there and may be published to, as
'outboxctl doctor' does. Nothing is kept by any stream or topic; but NATS is asked by an empty message that every stream
must reject, and that subscribers without JetStream do get. The database is not asked.

--send publishes one message as well, which consumers do get. Its type is posthaste.test, it has the attribute test, and
it stands in no outbox. Consumers of package consumer acknowledge it and run no handler, so no inbox has a mark of it;
others must ignore that type themselves. A topic with a schema of its own may reject it.

It ends with 0 if all is well, and with 1 if not.`,
		Example: `  outboxctl topics test orders --config publisher.yaml
  outboxctl topics test --all -o json
  outboxctl topics test orders --send`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || c.all == (len(args) == 1) {
				return errors.New("topics test takes the name of one topic, or --all")
			}
			c.topic = strings.Join(args, "")
			return nil
		},
	}, c.run)
	cmd.Flags().StringVar(&c.config, "config", "", "the configuration file of outbox-publisher")
	cmd.Flags().BoolVar(&c.all, "all", false, "every topic of the registry")
	cmd.Flags().BoolVar(&c.send, "send", false, "publish a test message as well")
	return cmd
}

func (c *topicsTestCommand) run(ctx context.Context, p *present.Printer) error {
	environ, args, given, err := c.root.publisherConfiguration(c.config)
	switch {
	case err != nil:
		return problem{
			code: "config_invalid", exit: exitFailed, err: err, hint: "'outboxctl config' shows and checks it alone",
		}
	case !given:
		return usageError{"no configuration of outbox-publisher is given: --config FILE, or POSTHASTE_BROKER and others"}
	}
	var topics []string
	if !c.all {
		topics = []string{c.topic}
	}
	tests, err := program.New("").TestTopics(ctx, args, environ, topics, c.send)
	if err != nil {
		return err
	}
	var rows []topicTest
	failed := 0
	for _, test := range tests {
		row := resultOf(test)
		if rows = append(rows, row); !row.OK {
			failed++
		}
	}
	if err := present.List(p, rows, "the registry has no topic", topicTestColumns()...); err != nil {
		return err
	}
	if failed > 0 {
		return problem{code: "findings", exit: exitFailed, err: fmt.Errorf("%d of %s: see why",
			failed, plural(len(rows), "topic", "topics"))}
	}
	return nil
}

func resultOf(test daemon.TopicTest) topicTest {
	row := topicTest{Topic: test.Topic, Broker: test.Broker, OK: len(test.Findings) == 0 && test.Error == ""}
	for _, finding := range test.Findings {
		row.Findings = append(row.Findings, topicTestDetail{Code: finding.Code, Text: finding.Text, Fix: finding.Fix})
	}
	if test.Error != "" {
		row.Findings = append(row.Findings, topicTestDetail{Code: "test_not_taken", Text: test.Error})
	}
	if test.Sent != (outbox.ID{}) {
		row.Sent = test.Sent.String()
	}
	return row
}

func topicTestColumns() []present.Column[topicTest] {
	return []present.Column[topicTest]{
		{Name: "TOPIC", Of: func(t topicTest) string { return t.Topic }},
		{
			Name: "STATE", Of: func(t topicTest) string {
				switch {
				case t.Sent != "":
					return "took a test message"
				case !t.OK:
					return "see why"
				}
				return "would take a message"
			},
			Style: func(t topicTest) present.Style {
				if t.OK {
					return present.Good
				}
				return present.Bad
			},
		},
		{Name: "TEST MESSAGE", Optional: true, Of: func(t topicTest) string { return t.Sent }},
		{Name: "WHY", Optional: true, Of: func(t topicTest) string {
			var why []string
			for _, finding := range t.Findings {
				text := finding.Code + ": " + finding.Text
				if finding.Fix != "" {
					text += " (" + finding.Fix + ")"
				}
				why = append(why, text)
			}
			return strings.Join(why, "; ")
		}},
	}
}
