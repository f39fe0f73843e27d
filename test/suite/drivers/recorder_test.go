package drivers_test

import (
	"context"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm/logger"
)

// A recorder is a GORM logger that keeps the statements.
type recorder struct {
	mu         sync.Mutex
	statements []string
}

// LogMode keeps the recorder in place.
func (r *recorder) LogMode(logger.LogLevel) logger.Interface { return r }

// Info ignores messages.
func (r *recorder) Info(context.Context, string, ...any) {}

// Warn ignores messages.
func (r *recorder) Warn(context.Context, string, ...any) {}

// Error ignores messages.
func (r *recorder) Error(context.Context, string, ...any) {}

// Trace keeps the statement.
func (r *recorder) Trace(_ context.Context, _ time.Time, explain func() (string, int64), _ error) {
	statement, _ := explain()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statements = append(r.statements, statement)
}

// writes are the statements that do more than look.
func (r *recorder) writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, statement := range r.statements {
		if !strings.HasPrefix(strings.TrimSpace(strings.ToUpper(statement)), "SELECT") {
			found = append(found, statement)
		}
	}
	return found
}
