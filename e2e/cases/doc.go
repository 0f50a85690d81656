// Package cases holds no code: its tests run failures that people have met and
// told of in public, each as a scenario of its own, through the real program.
//
// A case is a file testdata/C01.txtar, an archive of
//
//	case.yaml        what it is, and how its arrivals are ordered (see type plan)
//	hookfold.yaml    the sources and tables; the rest of the config is put before it
//	schema.sql       optional: the user's own tables as they are before Hookfold comes;
//	                 schema.postgres.sql is that of one engine
//	arrivals.ndjson  what arrives, a line each (see type arrival)
//	expect.yaml      what there must be in the end (see type outcome); expect.sqlite.yaml
//	                 where one engine differs
//
// A folder in it is a variant, whose files take the place of those of the case;
// its case.yaml says only what is other. {{now}}, {{now-60s}} and {{now+365d}}
// stand for times; everything else is taken as it is written.
//
// What a file cannot say (processes that die, databases that are down) is a Go
// function in coded, under the same name. pending lists what needs a feature
// that is not there yet, with a test that it is really refused. docs/cases.md
// shows the state of all of them.
package cases
