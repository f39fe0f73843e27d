package console

// Forget has the next page read everything again, instead of what was read a moment ago.
func (c *Console) Forget() {
	for _, of := range c.outboxes {
		of.forgetOrders()
		of.series.forget()
		of.problems.forget()
		of.system.relays.forget()
		of.system.lanes.forget()
		of.system.writers.forget()
		of.system.blocking.forget()
		of.system.jobs.forget()
		of.system.types.forget()
		of.system.database.forget()
		of.system.grants.forget()
		of.system.lookups.forget()
	}
}
