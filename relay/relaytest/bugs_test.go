package relaytest_test

import (
	"bytes"
	"strings"

	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// A bug is what is wrong with a publisher.
type bug string

const (
	none              bug = ""
	acksBeforeSending bug = "acknowledges before it sends"
	changesBody       bug = "writes the JSON anew"
	dropsAttribute    bug = "drops an attribute"
	addsAttribute     bug = "sends an empty tenant_id where there is none"
	localTime         bug = "writes created_at without microseconds"
	dropsKey          bug = "drops the key"
	lowersNames       bug = "writes names in lower case"
	injects           bug = "lets a line break begin another attribute"
	trims             bug = "trims values"
	changesMessage    bug = "changes the message it was given"
	sendsTwice        bug = "sends everything twice"
	breaksOrder       bug = "breaks the order"
	topicIsTerminal   bug = "kills events of a missing topic"
	topicIsMade       bug = "acknowledges what has no topic"
	topicStaysGone    bug = "takes a topic that was made again for the one that was removed"
	authIsRejected    bug = "charges events for denied credentials"
	largeIsRejected   bug = "retries what is too large"
	cutsLarge         bug = "takes what is too large"
	limitIsOneLess    bug = "refuses what just fits"
	badStopsAll       bug = "stops after one bad message"
	lostIsNil         bug = "takes silence for an acknowledgement"
	lostIsNotSent     bug = "takes a lost acknowledgement for a message that was not sent"
	lostIsRejected    bug = "charges a lost acknowledgement"
	ignoresContext    bug = "ignores the context"
	downIsTerminal    bug = "kills events in an outage"
	downIsNil         bug = "acknowledges in an outage"
	neverRecovers     bug = "stays down after an outage"
	buffers           bug = "sends later what it gave up"
	queues            bug = "sends later what waited for its turn at a broker that hung"
	leaks             bug = "leaves a goroutine behind"
	worksClosed       bug = "acknowledges after Close"
	hangsClosed       bug = "hangs after Close"

	doneTwice        bug = "calls done twice"
	doneNever        bug = "forgets to call done"
	goesOn           bug = "goes on behind a failure"
	chargesFollowers bug = "charges what is behind a failure"
	swaps            bug = "swaps pipelined messages"
	shallow          bug = "has no depth"
)

// finding is the case of the suite that must find a bug, and part of the problem that it must report.
type finding struct{ in, problem string }

var finds = map[bug]finding{
	acksBeforeSending: {"acknowledged means stored", "returned nil before the broker had the message"},
	changesBody:       {"fidelity", "the body changed"},
	dropsAttribute:    {"fidelity", "attribute tenant_id is missing"},
	addsAttribute:     {"fidelity", `attribute "tenant_id" arrived, which was not sent`},
	localTime:         {"fidelity", "attribute created_at was sent as"},
	dropsKey:          {"fidelity", "the key was sent as"},
	lowersNames:       {"fidelity", "attribute UPPER is missing"},
	injects:           {"hostile attributes", `attribute "Injected" arrived`},
	trims:             {"hostile attributes", `attribute hostile was sent as " spaces around "`},
	changesMessage:    {"fidelity", "changed the message"},
	sendsTwice:        {"fidelity", "arrived 2 times"},
	breaksOrder:       {"order", "order: default/order/o-"},
	topicIsTerminal:   {"missing topic", "the topic does not exist: want a TopicError"},
	topicIsMade:       {"missing topic", "the topic does not exist, yet Publish returned nil"},
	topicStaysGone:    {"missing topic", "after the topic was made again"},
	authIsRejected:    {"denied credentials", "the credentials are denied: want a TopicError"},
	largeIsRejected:   {"size limit", "above the limit of 4096: want a TerminalError"},
	cutsLarge:         {"size limit", "above the limit of 4096: want a TerminalError"},
	limitIsOneLess:    {"size limit", "which is the limit"},
	badStopsAll:       {"one bad message among good ones/too large", "after a bad message"},
	lostIsNil:         {"lost acknowledgement", "an acknowledgement that was lost: nobody knows"},
	lostIsNotSent:     {"slow", "a deadline that passed: nobody knows"},
	lostIsRejected:    {"slow", "a deadline that passed: nobody knows"},
	ignoresContext:    {"slow", "after its deadline of"},
	downIsTerminal:    {"restart under load", "charged for a fault that is the broker's"},
	downIsNil:         {"restart under load", "was acknowledged, but the broker does not have it"},
	neverRecovers:     {"restart under load", "was not acknowledged within"},
	buffers:           {"given up is not sent later", "sent later all the same"},
	queues:            {"given up is not sent later/hanging", "events were given up while the broker hung"},
	leaks:             {"close", "is left after Close"},
	worksClosed:       {"close", "a publish after Close has class published"},
	hangsClosed:       {"close", "after its deadline of"},
	doneTwice:         {"pipeline/order", "done was called 2 times"},
	doneNever:         {"pipeline/order", "done was not called"},
	goesOn:            {"pipeline/rejected in the middle", "handed over before it, had failed"},
	chargesFollowers:  {"pipeline/rejected in the middle", "charged for"},
	swaps:             {"pipeline/order", "order: default/order/o-"},
	shallow:           {"pipeline/declared", "Depth is 1"},
}

// pipelined tells that a bug is one of Enqueue.
func (b bug) pipelined() bool {
	switch b {
	case doneTwice, doneNever, goesOn, chargesFollowers, swaps, shallow:
		return true
	default:
		return false
	}
}

// or is the wrong error for the bug, and the right one without it.
func (b bug) or(which bug, wrong, right error) error {
	if b == which {
		return wrong
	}
	return right
}

// spoil is what a bug does to a message on its way.
func (b bug) spoil(a *relaytest.Arrived) {
	rewrite := func(name string, change func(string) string) {
		if value, ok := a.Attributes[name]; ok {
			a.Attributes[name] = change(value)
		}
	}
	switch b {
	case changesBody:
		a.Body = bytes.ReplaceAll(a.Body, []byte(": "), []byte(":"))
	case dropsAttribute:
		delete(a.Attributes, "tenant_id")
	case addsAttribute:
		if _, ok := a.Attributes["tenant_id"]; !ok {
			a.Attributes["tenant_id"] = ""
		}
	case localTime:
		rewrite("created_at", func(value string) string { return value[:len("2026-03-29T01:59:59")] + "Z" })
	case dropsKey:
		a.Key = ""
	case lowersNames:
		for name, value := range a.Attributes {
			delete(a.Attributes, name)
			a.Attributes[strings.ToLower(name)] = value
		}
	case injects:
		if before, after, found := strings.Cut(a.Attributes["hostile"], "\n"); found {
			a.Attributes["hostile"] = strings.TrimSuffix(before, "\r")
			name, value, _ := strings.Cut(after, ": ")
			a.Attributes[name] = value
		}
	case trims:
		rewrite("hostile", strings.TrimSpace)
	default:
	}
}
