-- A reading is one answer of somebody's API, sealed like a block of one frame.
CREATE TABLE reading (
  id   INTEGER PRIMARY KEY,
  data BLOB NOT NULL
) STRICT;

-- What a fetch has read for an event. Events that shared a read share a reading.
CREATE TABLE fetched (
  position INTEGER NOT NULL,
  idx      INTEGER NOT NULL,
  name     TEXT    NOT NULL,
  reading  INTEGER NOT NULL,
  PRIMARY KEY (position, idx, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX fetched_reading ON fetched (reading, position);
