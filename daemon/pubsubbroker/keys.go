package pubsubbroker

import (
	"errors"
	"math"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

var (
	project  = config.Text("pubsub.project", config.Spec[string]{Doc: "The project of the topics.", Example: "shop-prod"})
	endpoint = config.Text("pubsub.endpoint", config.Spec[string]{
		Otherwise: "Google's", Example: "europe-west1-pubsub.googleapis.com:443",
		Doc: "Where Pub/Sub is. One on this machine is an emulator: no TLS, no credentials.",
	})
	credentialsFile = config.Text("pubsub.credentials_file", config.Spec[string]{
		Otherwise: "those of where it runs", Doc: "A key or a federation's file, read whenever a token is fetched.",
	})
	impersonated = config.Text("pubsub.impersonate", config.Spec[string]{
		Otherwise: "none", Example: "publisher@shop-prod.iam.gserviceaccount.com",
		Doc: "The service account to publish as, in place of the credentials' own.",
	})
	quotaProject = config.Text("pubsub.quota_project", config.Spec[string]{
		Otherwise: "that of the credentials", Doc: "The project whose quota is used and which is billed.",
	})
	universeDomain = config.Text("pubsub.universe_domain", config.Spec[string]{
		Otherwise: "that of `pubsub.credentials_file`, or `googleapis.com`",
		Doc:       "The domain of a cloud that is not Google's own.",
	})
	connections = config.Integer("pubsub.connections", config.Spec[int]{
		Default: 4, Check: config.Between(1, 64),
		Doc: "Connections. Google takes 100 requests at a time on one, and with many aggregates each event is a request.",
	})
	timeout = config.Duration("pubsub.timeout", config.Spec[time.Duration]{
		Otherwise: "four fifths of `relay.publish_deadline`", Check: positive[time.Duration],
		Doc: "The time of one request, below `relay.publish_deadline`. Where Pub/Sub takes longer, every attempt may be " +
			"accepted and none acknowledged: raise it, with the deadline and `relay.lease`.",
	})
	unordered = config.List("pubsub.unordered", config.Spec[[]string]{
		Otherwise: "none", Example: "clicks,page-views",
		Doc: "Topics that are sent to without ordering keys: no order, less cost, no limit of 1 MB/s per aggregate. `*` " +
			"is all of them.",
	})
	compression = config.Boolean("pubsub.compression", config.Spec[bool]{
		Doc: "Compress requests on their way.",
	})
	batchDelay = config.Duration("pubsub.batch_delay", config.Spec[time.Duration]{
		Default: time.Millisecond, Check: positive[time.Duration],
		Doc: "How long a message waits for others to share its request. Only those of one aggregate do, or all of an " +
			"unordered topic.",
	})
	batchMessages = config.Integer("pubsub.batch_messages", config.Spec[int]{
		Default: 100, Check: config.Between(1, 1000), Doc: "The most messages of one request.",
	})
	batchBytes = config.Size("pubsub.batch_bytes", config.Spec[int]{
		Default: 1_000_000, Check: config.Between(1, 10_000_000), Doc: "At how many bytes a request leaves at once.",
	})
	maxMessages = config.Integer("pubsub.max_messages", config.Spec[int]{
		Default: 1000, Check: config.Between(1, math.MaxInt32),
		Doc: "The most messages of one topic in the client, and requests under way; more wait.",
	})
	maxBytes = config.Size("pubsub.max_bytes", config.Spec[int]{
		Default: 64 << 20, Check: config.Between(1, math.MaxInt32),
		Doc: "The most bytes of one topic in the client; more wait.",
	})
)

// keys are those of this broker.
func keys() []config.AnyKey {
	return []config.AnyKey{
		project, endpoint, credentialsFile, impersonated, quotaProject, universeDomain, connections, timeout, unordered,
		compression, batchDelay, batchMessages, batchBytes, maxMessages, maxBytes,
	}
}

func positive[T int | time.Duration](value T) error {
	if value <= 0 {
		return errors.New("must be more than nothing")
	}
	return nil
}
