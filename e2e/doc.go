// Package e2e holds the tests of the whole: the real binary, real HTTP, real
// databases. Scenarios are transcripts in testdata/*.txtar: a config, requests,
// and the rows that must come of them, run on each engine.
package e2e
