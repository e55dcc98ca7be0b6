// Package quotatest is what the tests of the engine and of its rooms share: databases, targets
// and limits, and a walk over the plans that PostgreSQL makes.
//
// Nothing but tests may import it.
package quotatest
