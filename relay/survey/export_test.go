package survey

import "context"

// ReadyUpTo asks for what is ready alone, with another limit.
func ReadyUpTo(ctx context.Context, db DB, config Config, limit int) (Report, error) {
	part := partsOf(&config)[0]
	part.args[0] = limit
	var found Report
	err := New(config).query(ctx, db, part, &found)
	return found, err
}
