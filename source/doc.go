// Package source turns HTTP requests into events: a source verifies a delivery
// over its raw bytes, answers the handshakes of its provider, and splits a
// delivery into the events it holds. A Preset is a ready source for one
// provider, one small file each.
//
// # What a preset promises
//
// A preset is a contract with whoever writes a mapping, told in its Doc:
//
//   - what is signed, by which header, under which secret, and how far a signed
//     time may lie from the clock, in either direction;
//   - what event, type, id, time and envelope are. An id stands for one event,
//     the same over every retry; where the provider gives none, there is none,
//     and none is made up. A time is when the thing happened, not when the
//     provider told of it, unless the Doc says so;
//   - the types it can send (Types), how fine its times are (Grain), and why they
//     may not order events all the same (TimeCaution);
//   - samples of the types often used, byte for byte as the provider sends them.
//     They are used at run time: mappings are tried on them, tests name them, and
//     they can be sent to a running server.
//
// Facts come from the provider's documentation, its published libraries, or
// measured deliveries; the Doc names which.
//
// # What every source does
//
// Verify compares in constant time, tries every secret, accepts a secret until
// the moment it runs out, and checks the signature before the signed time: a
// stale time under a good signature is a clock or a replay, under a bad one it
// is nothing. A refusal tells the operator sizes, ages, how many secrets there
// are, and what to look at; it holds no secret and no signature. It does not
// begin with the source's name: whoever logs it adds that.
//
// Split looks at the body alone, never at a signature or the clock, so that it
// gives the same events at any later time. A body with Content-Encoding: gzip is
// unpacked for it; signatures are over the bytes received. An element that lacks
// a part costs none of its neighbours: the part is missing, and only what uses
// it fails. The events of one delivery share its JSON, and so belong to one
// goroutine at a time.
//
// Sign does what the provider does, for sending and for tests.
//
// # Adding a preset
//
// One file, its samples, one line:
//
//  1. source/<name>.go: a function that returns the *Preset. Its New makes a
//     verifier out of the parts that are here (pairs for t=…,v1=… headers,
//     newHMAC for one signature in a header, newUnsigned for static headers; a
//     scheme of its own is a type with verify and sign) and hands it to build
//     with a split function. split checks that the body is of the provider's
//     shape, sets Body, Envelope, ID, Type of each event, and its time by
//     setTime.
//  2. source/samples/<name>/<type>.json (or .form), and <type>.headers.json, an
//     object, where headers carry a part of the event. Names, ids and numbers in
//     it are invented, never a person's. Add the sums to
//     testdata/samples.sha256.
//  3. A line in Presets.
//
// And its tests: the provider's published vectors and wrong ones in a
// TestVerify<Name>, an entry in TestSplitSamples and TestSplitShapes, options in
// signable (which signs, verifies and fuzzes it), and a FuzzSplit<Name> of one
// line with a corpus of the shapes that could hurt.
package source
