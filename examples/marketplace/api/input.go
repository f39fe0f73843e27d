package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"
)

// maxText is the most bytes of a name, a title or a reason.
const maxText = 500

func checkText(name, text string) error {
	if text == "" {
		return errors.New(name + " is missing")
	}
	return checkOptional(name, text)
}

func checkOptional(name, text string) error {
	if len(text) > maxText {
		return fmt.Errorf("%s may have %d bytes", name, maxText)
	}
	return nil
}

// lockedState asks for the state of a row with a statement that locks it, and refuses all but these.
func lockedState(ctx context.Context, tx pgx.Tx, allowed []string, statement string,
	args ...any,
) (state string, err error) {
	if err := tx.QueryRow(ctx, statement, args...).Scan(&state); err != nil {
		return "", database(err)
	}
	if !slices.Contains(allowed, state) {
		return "", reject(http.StatusConflict, "it is %s", state)
	}
	return state, nil
}

func database(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database: %w", err)
}
