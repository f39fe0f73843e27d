// Package schema shows that the tables are what docs/reference/schema.md says they are: on both servers, whichever
// tool installed them, whatever the schema is called; that the database itself refuses to change what was
// written; that each role can do its part and nothing else; and that the statements of the relay use the
// indexes that were made for them.
package schema
