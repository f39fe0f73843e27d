package events

import "github.com/posthaste-dev/posthaste/outbox"

// MediaUploaded says that a file arrived and can be processed.
var MediaUploaded = outbox.Define[MediaUploadedV1](outbox.Contract{
	Type: "media_uploaded", Version: 1, Aggregate: Media, Topic: domainTopic,
})

// MediaUploadedV1 is the payload of [MediaUploaded].
type MediaUploadedV1 struct {
	MediaID     string `json:"mediaId"`
	StoreID     string `json:"storeId"`
	Kind        string `json:"kind"`
	ContentType string `json:"contentType"`
	Bytes       int64  `json:"bytes"`
}
