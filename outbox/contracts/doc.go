// Package contracts has the contracts of a registry as a document: what producers, consumers and people can read of it
// without the program that publishes by it.
//
// A [Document] has the form of the registry's file (package daemon/registryfile), with every schema inside it, sorted:
// equal registries have equal documents, and a publisher reads one as it reads a file. Of a document are made the SQL
// with which producers emit ([Document.SQL]), an AsyncAPI document for consumers ([Document.AsyncAPI]), and of two of
// them what changes for whom ([Diff]).
//
// It promises no more than the document says. What a compiled contract checks of its payload in Go is in no schema and
// so in no document. Schemas are compared keyword by keyword; what cannot be compared so counts as breaking.
package contracts
