// Package wakeup shows that waking the relay is no part of a producer's transaction: no emit notifies
// before its commit (fault W2), and no trouble of the doorbell reaches the application (EM-12).
package wakeup
