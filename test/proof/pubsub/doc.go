// Package pubsub proves publisher and consumer against Google Pub/Sub itself, for whoever has a project. It creates
// topics and subscriptions, has the publisher go through the suite of all publishers, consumes through failures, sends
// and handles events for minutes while their connections are cut, refused and silent, counts, and removes what it has
// created.
//
// Faults are made at this side: [wire] is between the clients and their connections, and TLS goes through it as it is.
// What only Google could do, refuse credentials or one message, is not tried.
package pubsub
