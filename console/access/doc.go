// Package access decides who may open the console, and where it may listen.
//
// A [Mode] says who sent a request: [Local] for one person on one machine, [Users] for names and secrets in a file,
// [Proxy] for a proxy that has asked an identity provider. [Middleware] puts the [User] into the request's context,
// and [Listen] opens no address on which the mode would be unsafe.
//
// Whatever is not said is denied: a user without a role, a name that is in no file, a header from an address that is
// not listed. What is promised of a user (their role, their outboxes, their tenants, whether they may read payloads)
// is held by the console, which has to look at it; nothing here looks at an outbox.
//
// It is not promised that a name is a person: whoever has the secret has the role. The database's own rights hold
// beneath all this, so a console cannot do more than its database role may.
package access
