package daemon

import (
	"maps"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/publish"
)

func TestProblemsOfFormatsNameTheirKeys(t *testing.T) {
	t.Parallel()
	code, _, stderr := execute(t, inProcess(t, nil), []string{
		"run", "--message-format=cloudevent", "--message-source=my shop",
	},
		nowhere, "POSTHASTE_MESSAGE_FORMATS=orders=avro,order=cloudevents")
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		`flag --message-format: message.format: "cloudevent": must be one of envelope, cloudevents; did you mean ` +
			`cloudevents?`,
		`POSTHASTE_MESSAGE_FORMATS: message.formats: topic "orders": "avro", must be one of envelope, cloudevents`,
		`POSTHASTE_MESSAGE_FORMATS: message.formats: topic "order": no contract has it; those that are: orders`,
		"flag --message-source: message.source: must be a URI",
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("not told: %s\nin:\n%s", want, stderr)
		}
	}
}

func TestFormatsReachTheRelay(t *testing.T) {
	t.Parallel()
	settings := configured(t, inProcess(t, nil), "--message-format=cloudevents", "--message-formats=orders=envelope",
		"--message-source=/shop")
	if settings.Format != publish.CloudEvents || settings.Source != "/shop" ||
		!maps.Equal(settings.Formats, map[string]publish.Format{"orders": publish.Envelope}) {
		t.Errorf("the relay gets %+v", settings)
	}
}
