package events

import "github.com/posthaste-dev/posthaste/outbox"

// The life of an advertisement. Clicks and impressions are telemetry and no events.
var (
	AdCreated = outbox.Define[AdV1](outbox.Contract{
		Type: "ad_created", Version: 1, Aggregate: Ad, Topic: analyticsTopic,
	})
	AdUpdated = outbox.Define[AdV1](outbox.Contract{
		Type: "ad_updated", Version: 1, Aggregate: Ad, Topic: analyticsTopic,
	})
	AdPaused    = outbox.Define[AdV1](outbox.Contract{Type: "ad_paused", Version: 1, Aggregate: Ad, Topic: analyticsTopic})
	AdActivated = outbox.Define[AdV1](outbox.Contract{
		Type: "ad_activated", Version: 1, Aggregate: Ad, Topic: analyticsTopic,
	})
	AdExpired = outbox.Define[AdV1](outbox.Contract{Type: "ad_expired", Version: 1, Aggregate: Ad, Topic: analyticsTopic})
)

// AdDailyRollupReady says that the figures of one day can be read.
var AdDailyRollupReady = outbox.Define[AdDailyRollupReadyV1](outbox.Contract{
	Type: "ad_daily_rollup_ready", Version: 1, Aggregate: Ad, Topic: analyticsTopic,
})

// AdV1 is the payload of the events of an advertisement's life.
type AdV1 struct {
	AdID             string `json:"adId"`
	StoreID          string `json:"storeId"`
	Title            string `json:"title,omitempty"`
	DailyBudgetCents int64  `json:"dailyBudgetCents,omitempty"`
}

// AdDailyRollupReadyV1 is the payload of [AdDailyRollupReady].
type AdDailyRollupReadyV1 struct {
	AdID string `json:"adId"`
	// Day is the day in the marketplace's time zone, as YYYY-MM-DD.
	Day         string `json:"day"`
	Impressions int64  `json:"impressions"`
	Clicks      int64  `json:"clicks"`
	SpentCents  int64  `json:"spentCents"`
}
