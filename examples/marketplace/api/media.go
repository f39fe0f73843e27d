package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

type newMedia struct {
	StoreID     outbox.ID `json:"storeId"`
	Kind        string    `json:"kind"`
	ContentType string    `json:"contentType"`
	Bytes       int64     `json:"bytes"`
}

func (m newMedia) check() error {
	if m.Bytes < 1 {
		return errors.New("bytes must be more than 0")
	}
	return errors.Join(checkText("kind", m.Kind), checkText("contentType", m.ContentType))
}

// uploadMedia says that a file has arrived. The file itself is where files are kept.
func uploadMedia(ctx context.Context, tx pgx.Tx, _ *http.Request, in newMedia) (result, error) {
	done := result{status: http.StatusCreated, ID: outbox.NewID()}
	_, err := tx.Exec(ctx, `INSERT INTO media (id, store_id, kind, content_type, bytes) VALUES ($1, $2, $3, $4, $5)`,
		done.ID, in.StoreID, in.Kind, in.ContentType, in.Bytes)
	if err != nil {
		return done, database(err)
	}
	done.EventIDs, err = emit(ctx, tx, events.MediaUploaded.New(done.ID.String(), events.MediaUploadedV1{
		MediaID: done.ID.String(), StoreID: in.StoreID.String(), Kind: in.Kind, ContentType: in.ContentType, Bytes: in.Bytes,
	}))
	return done, err
}
