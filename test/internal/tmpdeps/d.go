package tmpdeps

import (
	_ "github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "gorm.io/gorm"
	_ "gorm.io/driver/postgres"
	_ "github.com/pressly/goose/v3"
	_ "go.uber.org/goleak"
	_ "cloud.google.com/go/pubsub/v2"
	_ "cloud.google.com/go/pubsub/v2/pstest"
	_ "github.com/jmoiron/sqlx"
	_ "github.com/posthaste-dev/posthaste/outbox"
)
