-- Events that a person has dropped: what they say has not landed, or only in
-- part. They are forgotten with their deliveries.
CREATE TABLE dropped (
  position INTEGER NOT NULL,
  idx      INTEGER NOT NULL,
  consumer TEXT    NOT NULL,
  PRIMARY KEY (position, idx, consumer)
) STRICT, WITHOUT ROWID;
