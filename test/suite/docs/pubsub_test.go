package docs

import (
	"strings"
	"testing"
)

// pubsubSetUp is what docs/guide/brokers/pubsub.md creates with gcloud, and the same in Terraform.
var pubsubSetUp = map[string]string{
	"--message-storage-policy-allowed-regions=": "allowed_persistence_regions = [",
	"--enable-message-ordering":                 "enable_message_ordering = true",
	"--ack-deadline=60":                         "ack_deadline_seconds = 60",
	"--min-retry-delay=10s":                     `minimum_backoff = "10s"`,
	"--max-retry-delay=600s":                    `maximum_backoff = "600s"`,
	"--dead-letter-topic=":                      "dead_letter_topic = ",
	"--max-delivery-attempts=10":                "max_delivery_attempts = 10",
	"--message-retention-duration=7d":           `message_retention_duration = "604800s"`,
	"--message-retention-duration=31d":          `message_retention_duration = "2678400s"`,
	"--expiration-period=never":                 `ttl = ""`,
	"--role=roles/pubsub.publisher":             `"roles/pubsub.publisher"`,
	"--role=roles/pubsub.subscriber":            `"roles/pubsub.subscriber"`,
	"--role=roles/pubsub.viewer":                `"roles/pubsub.viewer"`,
}

// The page's commands and the file for Terraform create the same.
func TestPubSubIsSetUpTheSameBothWays(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/guide/brokers/pubsub.md")
	terraform := strings.Join(strings.Fields(read(t, "deploy/terraform/pubsub/main.tf")), " ")
	for flag, argument := range pubsubSetUp {
		if !strings.Contains(page, flag) {
			t.Errorf("the page has no %s", flag)
		}
		if !strings.Contains(terraform, argument) {
			t.Errorf("main.tf has no %s", argument)
		}
	}
	_, commands, _ := strings.Cut(page, "## Setting it up")
	commands, _, _ = strings.Cut(commands, "\n```\n")
	for word := range strings.FieldsSeq(commands) {
		name, _, _ := strings.Cut(word, "=")
		known := name == "--topic" || name == "--member" || name == "--format"
		for flag := range pubsubSetUp {
			known = known || strings.HasPrefix(flag, name)
		}
		if strings.HasPrefix(word, "--") && !known {
			t.Errorf("whether main.tf has what %s does is not looked at", word)
		}
	}
}
