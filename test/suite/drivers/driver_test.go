package drivers_test

import (
	"context"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// A driver is one way to reach PostgreSQL from Go. All of them go through the same behaviours.
type driver struct {
	name string
	// named tells that it prepares statements under names, which belong to one server connection.
	named bool
	// trips are the round trips of the first emit on a connection and of every later one.
	trips [2]int
	open  func(t testing.TB, url, schema string) begin
}

// begin starts a transaction with the driver.
type begin func(ctx context.Context) (tx, error)

// A tx is a transaction in the driver's own hands.
type tx interface {
	emit(ctx context.Context, events ...outbox.Event) ([]outbox.Receipt, error)
	inboxTx
	exec(ctx context.Context, statement string) error
	commit(ctx context.Context) error
	rollback(ctx context.Context) error
}

// inboxTx is what a consumer does with it.
type inboxTx interface {
	first(ctx context.Context, consumer string, event outbox.ID) (bool, error)
	newer(ctx context.Context, consumer string, aggregate outbox.Aggregate, seq int64) (bool, error)
}

func drivers() []driver {
	var all []driver
	for _, mode := range []struct { // pgx's query modes, as its connection strings spell them
		name  string
		named bool
		trips [2]int
	}{
		{"cache_statement", true, [2]int{2, 1}},
		{"cache_describe", false, [2]int{2, 1}},
		{"describe_exec", false, [2]int{2, 2}},
		{"exec", false, [2]int{1, 1}},
		{"simple_protocol", false, [2]int{1, 1}},
	} {
		parameter := "default_query_exec_mode=" + mode.name
		all = append(
			all,
			driver{"pgx/" + mode.name, mode.named, mode.trips, openPgx(parameter)},
			driver{"sql-pgx/" + mode.name, mode.named, mode.trips, openSQL("pgx", parameter)},
		)
	}
	const describe = "default_query_exec_mode=cache_describe"
	return append(
		all,
		driver{"sql-pq/default", false, [2]int{2, 2}, openSQL("postgres", "")},
		driver{"sql-pq/binary_parameters", false, [2]int{1, 1}, openSQL("postgres", "binary_parameters=yes")},
		driver{"sqlx-pgx/cache_describe", false, [2]int{2, 1}, openSqlx("pgx", describe)},
		driver{"sqlx-pq/default", false, [2]int{2, 2}, openSqlx("postgres", "")},
		driver{"bun-pgx/cache_describe", false, [2]int{2, 1}, openBun("pgx", describe)},
		driver{"bun-pq/default", false, [2]int{2, 2}, openBun("postgres", "")},
		driver{"gorm/default", true, [2]int{2, 1}, openGORM(gormMode{})},
		driver{"gorm/cache_describe", false, [2]int{2, 1}, openGORM(gormMode{parameters: describe})},
		driver{"gorm/PreferSimpleProtocol", false, [2]int{1, 1}, openGORM(gormMode{simple: true})},
		driver{"gorm/PrepareStmt", true, [2]int{2, 2}, openGORM(gormMode{prepare: true})},
		driver{"gorm/PreferSimpleProtocol+PrepareStmt", true, [2]int{2, 2}, openGORM(gormMode{simple: true, prepare: true})},
		driver{"gorm-pq/default", false, [2]int{2, 2}, openGORM(gormMode{driver: "postgres"})},
		driver{"gorm-pq/PrepareStmt", true, [2]int{3, 2}, openGORM(gormMode{driver: "postgres", prepare: true})},
	)
}
