-- A block is the deliveries of one commit: positions first to first+count-1.
-- Of these, kept are still there. newest is the latest receipt among them, in
-- nanoseconds since 1970 UTC. The columns that are read without the data stand
-- before it.
CREATE TABLE block (
  first  INTEGER PRIMARY KEY,
  count  INTEGER NOT NULL,
  kept   INTEGER NOT NULL,
  newest INTEGER NOT NULL,
  data   BLOB    NOT NULL
) STRICT;

-- The one row of totals. next is the next position if no block is left to tell;
-- removed counts the deliveries that were removed; blocks before packed need no
-- more packing. Positions have no gaps from
-- 1 on, so the deliveries that are kept need not be counted.
CREATE TABLE total (
  only    INTEGER PRIMARY KEY CHECK (only = 1),
  next    INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  packed  INTEGER NOT NULL
) STRICT;
INSERT INTO total (only, next, removed, packed) VALUES (1, 1, 0, 1);

-- A consumer is done with all positions up to done, and with the ranges above.
CREATE TABLE consumer (
  name  TEXT PRIMARY KEY,
  done  INTEGER NOT NULL,
  above BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- An entry is an event that is waiting or dead for a consumer. Times are in
-- nanoseconds since 1970 UTC. next is NULL for one that is never due by itself.
-- asked counts how often somebody asked to try it again.
CREATE TABLE entry (
  position INTEGER NOT NULL,
  idx      INTEGER NOT NULL,
  consumer TEXT    NOT NULL,
  state    TEXT    NOT NULL CHECK (state IN ('waiting', 'dead')),
  reason   TEXT    NOT NULL,
  waits_on TEXT    NOT NULL,
  source   TEXT    NOT NULL,
  event_id TEXT    NOT NULL,
  type     TEXT    NOT NULL,
  tbl      TEXT    NOT NULL,
  row_key  TEXT    NOT NULL,
  since    INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  next     INTEGER,
  asked    INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (position, idx, consumer)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_due ON entry (consumer, next) WHERE next IS NOT NULL;

-- A receipt is when and where an identity was first received: identity is the
-- first half of the SHA-256 of source and id, received is in nanoseconds since
-- 1970 UTC.
CREATE TABLE receipt (
  identity BLOB PRIMARY KEY,
  received INTEGER NOT NULL,
  position INTEGER NOT NULL,
  idx      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A write to probe tells whether the disk takes writes again after an error.
CREATE TABLE probe (
  data BLOB NOT NULL
) STRICT;
