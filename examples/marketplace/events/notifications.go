package events

import "github.com/posthaste-dev/posthaste/outbox"

// NotificationRequested asks for a message to people.
var NotificationRequested = outbox.Define[NotificationRequestedV1](outbox.Contract{
	Type: "notification_requested", Version: 1, Aggregate: Notification, Topic: notificationsTopic,
})

// NotificationRequestedV1 is the payload of [NotificationRequested]. It names the text by a template,
// so that no personal data travels with it.
type NotificationRequestedV1 struct {
	NotificationID string            `json:"notificationId"`
	RecipientID    string            `json:"recipientId"`
	Channel        string            `json:"channel"`
	Template       string            `json:"template"`
	Values         map[string]string `json:"values,omitempty"`
}
