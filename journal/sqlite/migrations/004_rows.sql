-- Which deliveries are about which rows: what one batch of a consumer told of
-- the positions first to last, by one plan. whole says that it is all there is to
-- know of them by that plan; what is not only adds to it.
CREATE TABLE row_index (
  id       INTEGER PRIMARY KEY,
  consumer TEXT    NOT NULL,
  plan     INTEGER NOT NULL,
  first    INTEGER NOT NULL,
  last     INTEGER NOT NULL,
  whole    INTEGER NOT NULL,
  data     BLOB    NOT NULL
) STRICT;
