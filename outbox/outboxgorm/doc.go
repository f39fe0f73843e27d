// Package outboxgorm has GORM models of the outbox's tables, for reading:
//
//	var events []outboxgorm.Event
//	err := db.Where("aggregate_type = ? AND aggregate_id = ?", "order", id).Order("seq").Find(&events).Error
//
// The models are plain structs with tags, so this package imports nothing; the tables are those of
// package schema, column by column but for the lane of an event. An event that failed, or waits behind one that did,
// is held: what holds it back stands in a table of its own, which is empty while all is well.
//
//	var due []outboxgorm.HeldEvent
//	err := db.Where("kind = ?", outboxgorm.Retrying).Order("due").Limit(10).Find(&due).Error
//
// Where they are in another schema than the connection's search_path
// finds, name it: db.Table("billing.outbox_events").
//
// # What is not promised
//
// The models are not for writing. Events are emitted with outbox.EmitGORM, which checks them, numbers
// them, writes the envelope and takes the dedupe key, all in one statement; a row made by db.Create
// would have skipped that. What was written never changes, and the state belongs to the relay. So every
// field is read-only to GORM (the tag <-:false): Create, Save and Updates of a model find nothing that
// they may write. Statements that name the columns themselves pass GORM by; the database's own checks,
// triggers and grants hold those.
//
// The tables are made by the migrations of package schema, not by AutoMigrate, which knows neither the
// checks nor the indexes nor the triggers. On tables that exist it changes nothing.
package outboxgorm
