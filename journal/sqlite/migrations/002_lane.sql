-- Lanes read the entries of one key, in order of acceptance.
CREATE INDEX entry_key ON entry (consumer, row_key, position, idx);

-- A mark is a small value by name, which its user keeps across restarts.
CREATE TABLE mark (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
