-- Every statement of the store, by name.

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: page-count
PRAGMA page_count

-- name: free-count
PRAGMA freelist_count

-- name: page-size
PRAGMA page_size

-- name: log-size
-- Of the write-ahead log: busy, frames, frames that are in the file already.
PRAGMA wal_checkpoint(NOOP)

-- name: checkpoint
PRAGMA wal_checkpoint(PASSIVE)

-- name: empty-log
PRAGMA wal_checkpoint(TRUNCATE)

-- name: next-position
SELECT max(t.next, coalesce((SELECT b.first + b.count FROM block b ORDER BY b.first DESC LIMIT 1), 1)) FROM total t

-- name: insert-block
INSERT INTO block (first, count, kept, newest, data) VALUES (?1, ?2, ?3, ?4, ?5)

-- name: block-at
SELECT first, data FROM block WHERE first <= ?1 AND first + count > ?1 ORDER BY first DESC LIMIT 1

-- name: blocks-from
SELECT first, data FROM block
WHERE first >= coalesce((SELECT max(first) FROM block WHERE first <= ?1), 0) AND first + count > ?1
ORDER BY first

-- name: newest-block
SELECT first, data FROM block ORDER BY first DESC LIMIT 1

-- name: probe-write
INSERT INTO probe (data) VALUES (randomblob(65536))

-- name: probe-clear
DELETE FROM probe

-- name: totals
SELECT t.removed, max(t.next, coalesce((SELECT first + count FROM block ORDER BY first DESC LIMIT 1), 1)),
  (SELECT count(*) FROM entry WHERE state = 'waiting'), (SELECT count(*) FROM entry WHERE state = 'dead')
FROM total t

-- name: oldest-block
SELECT first, data FROM block ORDER BY first LIMIT 1

-- name: consumer
SELECT done, above FROM consumer WHERE name = ?1

-- name: new-consumer
INSERT INTO consumer (name, done, above)
SELECT ?1, coalesce((SELECT min(first) - 1 FROM block), max(t.next) - 1), x'' FROM total t

-- name: set-progress
UPDATE consumer SET done = ?2, above = ?3 WHERE name = ?1

-- name: forget-entries
DELETE FROM entry WHERE consumer = ?1

-- name: forget-consumer
DELETE FROM consumer WHERE name = ?1

-- name: consumers
SELECT name FROM consumer ORDER BY name

-- name: clear-entries
DELETE FROM entry WHERE position BETWEEN ?2 AND ?3 AND consumer = ?1

-- name: put-entry
INSERT INTO entry (position, idx, consumer, state, reason, waits_on, source, event_id, type, tbl, row_key, since, attempts, next)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT (position, idx, consumer) DO UPDATE SET
  state = excluded.state, reason = excluded.reason, waits_on = excluded.waits_on, source = excluded.source,
  event_id = excluded.event_id, type = excluded.type, tbl = excluded.tbl, row_key = excluded.row_key,
  attempts = excluded.attempts, next = excluded.next

-- name: renew-entry
-- An entry that was leased and is still not settled. One that was dropped
-- meanwhile stays dropped; one that somebody asked to try again is due at once.
UPDATE entry SET
  state = iif(asked = ?15, ?4, 'waiting'), next = iif(asked = ?15, ?14, 0),
  reason = ?5, waits_on = ?6, source = ?7, event_id = ?8, type = ?9, tbl = ?10, row_key = ?11,
  attempts = ?13
WHERE position = ?1 AND idx = ?2 AND consumer = ?3

-- name: delete-entry
DELETE FROM entry WHERE position = ?1 AND idx = ?2 AND consumer = ?3

-- name: due
SELECT position, idx, consumer, state, reason, waits_on, source, event_id, type, tbl, row_key, since, attempts, next, asked
FROM entry WHERE consumer = ?1 AND next <= ?2 ORDER BY next, position, idx

-- name: entries
SELECT position, idx, consumer, state, reason, waits_on, source, event_id, type, tbl, row_key, since, attempts, next, asked
FROM entry
WHERE (?1 = '' OR consumer = ?1) AND (?2 = '' OR state = ?2) AND (?3 = '' OR source = ?3) AND (?4 = '' OR tbl = ?4)
  AND (?5 = 0 OR position = ?5) AND (?6 IS NULL OR idx = ?6) AND (?7 = '' OR row_key = ?7) AND (position, idx) > (?8, ?9)
ORDER BY position, idx, consumer LIMIT ?10

-- name: entries-of-key
-- The same where consumer and key are given, by their index.
SELECT position, idx, consumer, state, reason, waits_on, source, event_id, type, tbl, row_key, since, attempts, next, asked
FROM entry
WHERE consumer = ?1 AND (?2 = '' OR state = ?2) AND (?3 = '' OR source = ?3) AND (?4 = '' OR tbl = ?4)
  AND (?5 = 0 OR position = ?5) AND (?6 IS NULL OR idx = ?6) AND row_key = ?7 AND (position, idx) > (?8, ?9)
ORDER BY position, idx LIMIT ?10

-- name: retry
UPDATE entry SET state = 'waiting', next = 0, asked = asked + 1
WHERE (?1 = '' OR consumer = ?1) AND (?2 = '' OR state = ?2) AND (?3 = '' OR source = ?3) AND (?4 = '' OR tbl = ?4)
  AND (?5 = 0 OR position = ?5) AND (?6 IS NULL OR idx = ?6) AND (?7 = '' OR row_key = ?7) AND (position, idx) > (?8, ?9)

-- name: wake
UPDATE entry SET next = 0, asked = asked + 1 WHERE position = ?1 AND idx = ?2 AND consumer = ?3

-- name: drop
DELETE FROM entry
WHERE (?1 = '' OR consumer = ?1) AND (?2 = '' OR state = ?2) AND (?3 = '' OR source = ?3) AND (?4 = '' OR tbl = ?4)
  AND (?5 = 0 OR position = ?5) AND (?6 IS NULL OR idx = ?6) AND (?7 = '' OR row_key = ?7) AND (position, idx) > (?8, ?9)

-- name: note-dropped
INSERT OR IGNORE INTO dropped (position, idx, consumer) SELECT position, idx, consumer FROM entry
WHERE (?1 = '' OR consumer = ?1) AND (?2 = '' OR state = ?2) AND (?3 = '' OR source = ?3) AND (?4 = '' OR tbl = ?4)
  AND (?5 = 0 OR position = ?5) AND (?6 IS NULL OR idx = ?6) AND (?7 = '' OR row_key = ?7) AND (position, idx) > (?8, ?9)

-- name: dropped
SELECT position, idx FROM dropped WHERE consumer = ?1 ORDER BY position, idx

-- name: undrop
-- Those whose deliveries are gone. An old block may be there still.
DELETE FROM dropped
WHERE coalesce((SELECT b.first + b.count FROM block b WHERE b.first <= dropped.position ORDER BY b.first DESC LIMIT 1), 0) <= dropped.position

-- name: forget-dropped
DELETE FROM dropped WHERE consumer = ?1

-- name: park
UPDATE entry SET state = 'dead', next = NULL, waits_on = ''
WHERE (?1 = '' OR consumer = ?1) AND (?2 = '' OR state = ?2) AND (?3 = '' OR source = ?3) AND (?4 = '' OR tbl = ?4)
  AND (?5 = 0 OR position = ?5) AND (?6 IS NULL OR idx = ?6) AND (?7 = '' OR row_key = ?7) AND (position, idx) > (?8, ?9)

-- name: amend-entry
-- One that was dropped or set aside meanwhile stays so.
UPDATE entry SET state = ?4, next = ?14, reason = ?5, waits_on = ?6, source = ?7, event_id = ?8, type = ?9, tbl = ?10, row_key = ?11,
  since = ?12, attempts = ?13
WHERE position = ?1 AND idx = ?2 AND consumer = ?3 AND NOT (state = 'dead' AND waits_on = '')

-- name: marks
SELECT name, value FROM mark

-- name: set-mark
INSERT INTO mark (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: delete-mark
DELETE FROM mark WHERE name = ?1

-- name: forget-marks
DELETE FROM mark WHERE substr(name, 1, length(?1) + 1) = ?1 || '/'

-- name: edited
INSERT INTO mark (name, value) VALUES ('edits', '1') ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)

-- name: state
-- What holds for a delivery as a whole (-1) holds for each of its events.
SELECT state FROM entry WHERE position = ?1 AND idx IN (?2, -1) AND consumer = ?3 ORDER BY idx DESC LIMIT 1

-- name: receipt
SELECT received, position, idx FROM receipt WHERE identity = ?1

-- name: put-receipt
INSERT INTO receipt (identity, received, position, idx) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING

-- name: fetched
SELECT f.position, f.idx, f.name, f.reading, r.data FROM fetched f JOIN reading r ON r.id = f.reading
WHERE f.position BETWEEN ?1 AND ?2 ORDER BY f.position, f.idx, f.name

-- name: any-fetched
SELECT EXISTS (SELECT 1 FROM fetched)

-- name: is-fetched
SELECT reading FROM fetched WHERE position = ?1 AND idx = ?2 AND name = ?3

-- name: put-reading
INSERT INTO reading (data) VALUES (?1)

-- name: put-fetched
INSERT INTO fetched (position, idx, name, reading) VALUES (?1, ?2, ?3, ?4)

-- name: delete-readings
-- What was read for deliveries of a range, and for none outside of it.
DELETE FROM reading WHERE id IN (SELECT f.reading FROM fetched f WHERE f.position BETWEEN ?1 AND ?2)
  AND NOT EXISTS (SELECT 1 FROM fetched o WHERE o.reading = reading.id AND o.position NOT BETWEEN ?1 AND ?2)

-- name: delete-fetched
DELETE FROM fetched WHERE position BETWEEN ?1 AND ?2

-- name: oldest-blocks
SELECT first, count, kept, newest, length(data) FROM block WHERE first >= ?1 ORDER BY first LIMIT ?2

-- name: settled-up-to
SELECT coalesce(min(done), 9223372036854775807) FROM consumer

-- name: held
SELECT DISTINCT position FROM entry WHERE position BETWEEN ?1 AND ?2 ORDER BY position

-- name: delete-block
DELETE FROM block WHERE first = ?1

-- name: shrink-block
UPDATE block SET kept = ?2, data = ?3 WHERE first = ?1

-- name: count-removed
UPDATE total SET removed = removed + ?1, next = max(next, ?2)

-- name: packed-up-to
SELECT packed FROM total

-- name: set-packed
UPDATE total SET packed = ?1

-- name: delete-receipts
-- One slice of the identities, which are spread evenly; an entry's own delivery
-- keeps its receipt.
DELETE FROM receipt WHERE identity BETWEEN ?1 AND ?2 AND received < ?3
  AND NOT EXISTS (SELECT 1 FROM entry e WHERE e.position = receipt.position)

-- name: vacuum
PRAGMA incremental_vacuum(256)

-- name: put-touches
INSERT INTO row_index (consumer, plan, first, last, whole, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)

-- name: touches
SELECT first, last, whole, data FROM row_index WHERE consumer = ?1 AND plan = ?2

-- name: small-touches
SELECT id, consumer, plan, first, last, whole, data FROM row_index WHERE id >= ?1 AND length(data) < ?2 ORDER BY id LIMIT ?3

-- name: delete-touches
DELETE FROM row_index WHERE id = ?1

-- name: drop-touches
-- Those of ranges that no block meets.
DELETE FROM row_index
WHERE coalesce((SELECT b.first + b.count FROM block b WHERE b.first <= row_index.last ORDER BY b.first DESC LIMIT 1), 0) <= row_index.first

-- name: forget-touches
DELETE FROM row_index WHERE consumer = ?1
