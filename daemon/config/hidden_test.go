package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/config"
)

func TestHiddenShowsWhereAndNotWhat(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]string{
		"":                                          "",
		"hunter2":                                   "***",
		"postgres://db":                             "postgres://db",
		"postgres://db:5432/shop":                   "postgres://db:5432/shop",
		"postgres://app:hunter2@db:5432/shop":       "postgres://***@db:5432/shop",
		"postgres://hunter2@db/shop?password=x":     "postgres://***@db/shop?***",
		"postgres://db/shop?password=hunter2":       "postgres://db/shop?***",
		"postgres://db/shop#hunter2":                "postgres://db/shop#***",
		"postgres://app:hunter2@a:1,b:2/shop":       "postgres://***@a:1,b:2/shop",
		"postgres://app:hun@ter2@db/shop":           "postgres://***@db/shop",
		"postgres://app:hun/ter2@db/shop":           "***",
		"postgres://app:hun?ter2@db/shop":           "***",
		"postgres://app:hun#ter2@db/shop":           "***",
		"postgres://app:hunter2":                    "***",
		"postgres://hunter2/x@db/shop":              "***",
		"postgres://hunter2?x@db/shop":              "***",
		"postgres://hunter2#x@db/shop":              "***",
		"postgres:hunter2":                          "***",
		"host=db password=hunter2 user=app":         "***",
		"nats://hunter2@[::1]:4222":                 "nats://***@[::1]:4222",
		"nats://a:4222,nats://b:4222":               "nats://a:4222,nats://b:4222",
		"nats://u:hunter2@a:4222,nats://b:4222":     "***",
		"https://hooks.example/T0/hunter2":          "https://hooks.example/***",
		"postgres://db/sh op":                       "postgres://db/***",
		"postgres://app:hunter2@db:x/shop":          "***",
		"postgres://app:hunter2@db/shop\nhunter2":   "postgres://***@db/***",
		"postgres://app:hunter2@db/shop?\nhunter2":  "***",
		"-----BEGIN PRIVATE KEY-----\nhunter2\n---": "***",
	} {
		hidden := config.Hide(secret)
		encoded, err := json.Marshal(map[string]any{"a": hidden})
		if err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).InfoContext(t.Context(), "x", "secret", hidden)
		all := strings.Join([]string{
			fmt.Sprint(hidden), fmt.Sprintf("%v %+v %#v %s %q", hidden, hidden, hidden, hidden, hidden), string(encoded),
			logged.String(),
		}, "\n")
		if strings.Contains(all, "hunter2") || strings.Contains(all, "ter2") {
			t.Errorf("%q is told: %s", secret, all)
		}
		if got := hidden.String(); got != want {
			t.Errorf("%q shows as %q, want %q", secret, got, want)
		}
		if hidden.Reveal() != secret {
			t.Errorf("%q is revealed as %q", secret, hidden.Reveal())
		}
	}
}
