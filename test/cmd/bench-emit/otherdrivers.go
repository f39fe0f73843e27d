package main

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// businessSQL is business by way of database/sql.
func (d *drivers) businessSQL(event func(context.Context, *sql.Tx, order) error) transaction {
	return func(ctx context.Context, client *bench.Client) error {
		o := d.w.order(client)
		tx, err := d.std.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // of no effect after the commit
		if _, err := tx.ExecContext(ctx, insertOrder, o.OrderID.String(), o.AccountID, o.Amount); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, updateAccount, o.AccountID, o.Amount); err != nil {
			return err
		}
		if err := event(ctx, tx, o); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func bareInsertSQL(ctx context.Context, tx *sql.Tx, o order) error {
	payload, err := o.payload()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, insertBare, payload)
	return err
}

func emitEventSQL(ctx context.Context, tx *sql.Tx, o order) error {
	_, err := outbox.EmitSQL(ctx, tx, o.event())
	return err
}

// businessGORM is business by way of GORM, with statements of our own: GORM's builder is not the subject.
func (d *drivers) businessGORM(event func(context.Context, *gorm.DB, order) error) transaction {
	return func(ctx context.Context, client *bench.Client) error {
		o := d.w.order(client)
		return d.orm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := tx.Exec(insertOrder, o.OrderID.String(), o.AccountID, o.Amount).Error; err != nil {
				return err
			}
			if err := tx.Exec(updateAccount, o.AccountID, o.Amount).Error; err != nil {
				return err
			}
			return event(ctx, tx, o)
		})
	}
}

func bareInsertGORM(_ context.Context, tx *gorm.DB, o order) error {
	payload, err := o.payload()
	if err != nil {
		return err
	}
	return tx.Exec(insertBare, payload).Error
}

func emitEventGORM(ctx context.Context, tx *gorm.DB, o order) error {
	_, err := outbox.EmitGORM(ctx, tx.Statement.ConnPool, o.event())
	return err
}
