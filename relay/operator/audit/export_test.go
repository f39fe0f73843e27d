package audit

// Statement is the text of a file, in a schema.
func Statement(schema, name string) string { return table{schema: schema}.sql(name) }
