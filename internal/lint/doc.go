// Package lint holds no code: its tests hold the project to its own rules.
// Imports go one way, pure packages do no I/O, files stay small enough to be
// read, and nothing in the tree points outside it.
package lint
