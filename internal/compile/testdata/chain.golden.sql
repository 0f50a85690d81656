==== postgres

-- Table booking for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table booking (
    id text collate "C" not null,
    status text,
    moves bigint,
    row_version text collate "C",
    occupant_since text collate "C",
    occupant_id text collate "C",
    seen_version text collate "C",
    delete_version text collate "C",
    primary key (id)
);
create table booking_occupants (
    id text collate "C" not null,
    occupant_id text collate "C" not null,
    status text,
    moves bigint,
    row_version text collate "C",
    occupant_since text collate "C",
    seen_version text collate "C",
    delete_version text collate "C",
    deleted_at timestamp with time zone,
    primary key (id, occupant_id)
);
create table if not exists hookfold_links (
    table_name text collate "C" not null,
    old text collate "C" not null,
    new text collate "C" not null,
    primary key (table_name, old, new)
);
create table if not exists hookfold_aliases (
    table_name text collate "C" not null,
    identity text collate "C" not null,
    root text collate "C" not null,
    primary key (table_name, identity)
);
create index if not exists hookfold_aliases_root on hookfold_aliases (table_name, root);
create table if not exists hookfold_ledger (
    table_name text collate "C" not null,
    "key" text collate "C" not null,
    column_name text collate "C" not null,
    identity text collate "C" not null,
    version text collate "C" not null,
    amount numeric not null,
    primary key (table_name, "key", column_name, identity)
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the table's numbers, ascending.
select pg_advisory_xact_lock($1::int4, b) from unnest($2::int4[]) as b;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select t.identity, t.root from unnest($2::text[]) as v (p2) join hookfold_aliases as t on t.table_name = $1 and t.identity = v.p2;

-- their other identities,
select t.identity, t.root from unnest($2::text[]) as v (p2) join hookfold_aliases as t on t.table_name = $1 and t.root = v.p2;

-- and what follows what:
select t.old, t.new from unnest($2::text[]) as v (p2) join hookfold_links as t on t.table_name = $1 and t.old = v.p2;

-- Read and lock rows:
--   $1 id: key, text
select v.hookfold_n, t.id, t.status, t.moves::text, t.row_version, t.occupant_since, t.occupant_id, t.seen_version, t.delete_version
from unnest($1::text[]) with ordinality as v (p1, hookfold_n)
join booking as t on t.id = v.p1
order by v.hookfold_n
for no key update of t;

-- Read all records of the keys:
--   $1 id: key, text
select v.hookfold_n, t.id, t.occupant_id, t.status, t.moves::text, t.row_version, t.occupant_since, t.seen_version, t.delete_version, case when isfinite(t.deleted_at) then to_char(t.deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else t.deleted_at::text end
from unnest($1::text[]) with ordinality as v (p1, hookfold_n)
join booking_occupants as t on t.id = v.p1;

-- Read which events were counted:
select t."key", t.column_name, t.identity, t.version, t.amount::text from unnest($2::text[], $3::text[], $4::text[]) as v (p2, p3, p4) join hookfold_ledger as t on t.table_name = $1 and t."key" = v.p2 and t.column_name = v.p3 and t.identity = v.p4;

-- or all of them, where chains join:
select t."key", t.column_name, t.identity, t.version, t.amount::text from unnest($2::text[]) as v (p2) join hookfold_ledger as t on t.table_name = $1 and t."key" = v.p2;

-- Remove rows:
--   $1 id: key, text
delete from booking as t
using unnest($1::text[]) as v (p1)
where t.id = v.p1;

-- Give a row the key of its chain:
--   $1 old: key, text
--   $2 new: key, text
update booking as t
set id = excluded.p2
from (select v.p1 as p1,
    v.p2 as p2
    from unnest($1::text[], $2::text[]) as v (p1, p2)) as excluded
where t.id = excluded.p1;

-- Change rows:
--   $1 id: key, text
--   $2 status: text, latest, set if row_version is not NULL
--   $3 moves: int, count
--   $4 row_version: version of scope row, NULL if it is not set
--   $5 occupant_since: since when the occupant holds the row, NULL if unknown
--   $6 occupant_id: the occupant
--   $7 seen_version: the greatest version of the row's writes
--   $8 delete_version: the version of its delete, NULL if there is none
update booking as t
set status = excluded.p2,
    moves = excluded.p3,
    row_version = excluded.p4,
    occupant_since = excluded.p5,
    occupant_id = excluded.p6,
    seen_version = excluded.p7,
    delete_version = excluded.p8
from (select v.p1 as p1,
    v.p2 as p2,
    v.p3::bigint as p3,
    v.p4 as p4,
    v.p5 as p5,
    v.p6 as p6,
    v.p7 as p7,
    v.p8 as p8
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8)) as excluded
where t.id = excluded.p1
  and (excluded.p2 is distinct from t.status
   or excluded.p3 is distinct from t.moves
   or excluded.p4 is distinct from t.row_version
   or excluded.p5 is distinct from t.occupant_since
   or excluded.p6 is distinct from t.occupant_id
   or excluded.p7 is distinct from t.seen_version
   or excluded.p8 is distinct from t.delete_version);

-- Insert rows:
-- The same parameters.
insert into booking as t (id, status, moves, row_version, occupant_since, occupant_id, seen_version, delete_version)
select v.p1,
    v.p2,
    v.p3::bigint,
    v.p4,
    v.p5,
    v.p6,
    v.p7,
    v.p8
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8)
on conflict (id) do nothing;

-- Store records:
--   $1 id: key, text
--   $2 occupant_id: the occupant, or an empty text for what belongs to the row itself
--   $3 status: text, latest, set if row_version is not NULL
--   $4 moves: int, count
--   $5 row_version: version of scope row, NULL if it is not set
--   $6 occupant_since: since when the occupant holds the row, NULL if unknown
--   $7 seen_version: the greatest version of the row's writes
--   $8 delete_version: the version of its delete, NULL if there is none
--   $9 deleted_at: the time of its delete, timestamp
insert into booking_occupants as t (id, occupant_id, status, moves, row_version, occupant_since, seen_version, delete_version, deleted_at)
select v.p1,
    v.p2,
    v.p3,
    v.p4::bigint,
    v.p5,
    v.p6,
    v.p7,
    v.p8,
    v.p9::timestamp with time zone
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8, p9)
on conflict (id, occupant_id) do update set
    status = excluded.status,
    moves = excluded.moves,
    row_version = excluded.row_version,
    occupant_since = excluded.occupant_since,
    seen_version = excluded.seen_version,
    delete_version = excluded.delete_version,
    deleted_at = excluded.deleted_at
where excluded.status is distinct from t.status
   or excluded.moves is distinct from t.moves
   or excluded.row_version is distinct from t.row_version
   or excluded.occupant_since is distinct from t.occupant_since
   or excluded.seen_version is distinct from t.seen_version
   or excluded.delete_version is distinct from t.delete_version
   or excluded.deleted_at is distinct from t.deleted_at;

-- Remove the records of a key that is no chain's any more:
--   $1 id: key, text
delete from booking_occupants as t
using unnest($1::text[]) as v (p1)
where t.id = v.p1;

-- Remember links:
insert into hookfold_links (table_name, old, new)
select $1, v.p2, v.p3 from unnest($2::text[], $3::text[]) as v (p2, p3)
on conflict (table_name, old, new) do nothing;

-- Point identities to their chain:
insert into hookfold_aliases (table_name, identity, root)
select $1, v.p2, v.p3 from unnest($2::text[], $3::text[]) as v (p2, p3)
on conflict (table_name, identity) do update set root = excluded.root;

-- Remember what was counted:
insert into hookfold_ledger (table_name, "key", column_name, identity, version, amount)
select $1, v.p2, v.p3, v.p4, v.p5, v.p6::numeric from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) as v (p2, p3, p4, p5, p6)
on conflict (table_name, "key", column_name, identity) do update set version = excluded.version, amount = excluded.amount;

-- Forget it of a key that is no chain's any more:
delete from hookfold_ledger as t using unnest($2::text[]) as v (p2) where t.table_name = $1 and t."key" = v.p2;

==== sqlite

-- Table booking for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table booking (
    id text not null,
    status text,
    moves integer,
    row_version text,
    occupant_since text,
    occupant_id text,
    seen_version text,
    delete_version text,
    primary key (id)
);
create table booking_occupants (
    id text not null,
    occupant_id text not null,
    status text,
    moves integer,
    row_version text,
    occupant_since text,
    seen_version text,
    delete_version text,
    deleted_at text,
    primary key (id, occupant_id)
);
create table if not exists hookfold_links (
    table_name text not null,
    old text not null,
    new text not null,
    primary key (table_name, old, new)
);
create table if not exists hookfold_aliases (
    table_name text not null,
    identity text not null,
    root text not null,
    primary key (table_name, identity)
);
create index if not exists hookfold_aliases_root on hookfold_aliases (table_name, root);
create table if not exists hookfold_ledger (
    table_name text not null,
    "key" text not null,
    column_name text not null,
    identity text not null,
    version text not null,
    amount text not null,
    primary key (table_name, "key", column_name, identity)
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own:
begin immediate;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select +t.identity, +t.root from hookfold_aliases as t where t.table_name = ?1 and t.identity = ?2;

-- their other identities,
select +t.identity, +t.root from hookfold_aliases as t where t.table_name = ?1 and t.root = ?2;

-- and what follows what:
select +t.old, +t.new from hookfold_links as t where t.table_name = ?1 and t.old = ?2;

-- Read and lock rows:
--   ?1 id: key, text
select +t.id, +t.status, +t.moves, +t.row_version, +t.occupant_since, +t.occupant_id, +t.seen_version, +t.delete_version from booking as t where t.id = ?1;

-- Read all records of the keys:
--   ?1 id: key, text
select +t.id, +t.occupant_id, +t.status, +t.moves, +t.row_version, +t.occupant_since, +t.seen_version, +t.delete_version, +t.deleted_at from booking_occupants as t where t.id = ?1;

-- Read which events were counted:
select +t."key", +t.column_name, +t.identity, +t.version, +t.amount from hookfold_ledger as t where t.table_name = ?1 and t."key" = ?2 and t.column_name = ?3 and t.identity = ?4;

-- or all of them, where chains join:
select +t."key", +t.column_name, +t.identity, +t.version, +t.amount from hookfold_ledger as t where t.table_name = ?1 and t."key" = ?2;

-- Remove rows:
--   ?1 id: key, text
delete from booking as t where t.id = ?1;

-- Give a row the key of its chain:
--   ?1 old: key, text
--   ?2 new: key, text
update booking as t
set id = excluded.p2
from (select ?1 as p1, ?2 as p2) as excluded
where t.id = excluded.p1;

-- Change rows:
--   ?1 id: key, text
--   ?2 status: text, latest, set if row_version is not NULL
--   ?3 moves: int, count
--   ?4 row_version: version of scope row, NULL if it is not set
--   ?5 occupant_since: since when the occupant holds the row, NULL if unknown
--   ?6 occupant_id: the occupant
--   ?7 seen_version: the greatest version of the row's writes
--   ?8 delete_version: the version of its delete, NULL if there is none
update booking as t
set status = excluded.p2,
    moves = excluded.p3,
    row_version = excluded.p4,
    occupant_since = excluded.p5,
    occupant_id = excluded.p6,
    seen_version = excluded.p7,
    delete_version = excluded.p8
from (select ?1 as p1, ?2 as p2, ?3 as p3, ?4 as p4, ?5 as p5, ?6 as p6, ?7 as p7, ?8 as p8) as excluded
where t.id = excluded.p1
  and (excluded.p2 collate binary is not t.status
   or excluded.p3 is not t.moves
   or excluded.p4 collate binary is not t.row_version
   or excluded.p5 collate binary is not t.occupant_since
   or excluded.p6 collate binary is not t.occupant_id
   or excluded.p7 collate binary is not t.seen_version
   or excluded.p8 collate binary is not t.delete_version);

-- Insert rows:
-- The same parameters.
insert into booking as t (id, status, moves, row_version, occupant_since, occupant_id, seen_version, delete_version)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5,
    ?6,
    ?7,
    ?8)
on conflict (id) do nothing;

-- Store records:
--   ?1 id: key, text
--   ?2 occupant_id: the occupant, or an empty text for what belongs to the row itself
--   ?3 status: text, latest, set if row_version is not NULL
--   ?4 moves: int, count
--   ?5 row_version: version of scope row, NULL if it is not set
--   ?6 occupant_since: since when the occupant holds the row, NULL if unknown
--   ?7 seen_version: the greatest version of the row's writes
--   ?8 delete_version: the version of its delete, NULL if there is none
--   ?9 deleted_at: the time of its delete, timestamp
insert into booking_occupants as t (id, occupant_id, status, moves, row_version, occupant_since, seen_version, delete_version, deleted_at)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5,
    ?6,
    ?7,
    ?8,
    ?9)
on conflict (id, occupant_id) do update set
    status = excluded.status,
    moves = excluded.moves,
    row_version = excluded.row_version,
    occupant_since = excluded.occupant_since,
    seen_version = excluded.seen_version,
    delete_version = excluded.delete_version,
    deleted_at = excluded.deleted_at
where excluded.status collate binary is not t.status
   or excluded.moves is not t.moves
   or excluded.row_version collate binary is not t.row_version
   or excluded.occupant_since collate binary is not t.occupant_since
   or excluded.seen_version collate binary is not t.seen_version
   or excluded.delete_version collate binary is not t.delete_version
   or excluded.deleted_at collate binary is not t.deleted_at;

-- Remove the records of a key that is no chain's any more:
--   ?1 id: key, text
delete from booking_occupants as t where t.id = ?1;

-- Remember links:
insert into hookfold_links (table_name, old, new) values (?1, ?2, ?3)
on conflict (table_name, old, new) do nothing;

-- Point identities to their chain:
insert into hookfold_aliases (table_name, identity, root) values (?1, ?2, ?3)
on conflict (table_name, identity) do update set root = excluded.root;

-- Remember what was counted:
insert into hookfold_ledger (table_name, "key", column_name, identity, version, amount) values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (table_name, "key", column_name, identity) do update set version = excluded.version, amount = excluded.amount;

-- Forget it of a key that is no chain's any more:
delete from hookfold_ledger as t where t.table_name = ?1 and t."key" = ?2;

==== mysql

-- Table booking for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `booking` (
    `id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `status` longtext character set utf8mb4,
    `moves` bigint,
    `row_version` varchar(255) character set ascii collate ascii_bin,
    `occupant_since` varchar(255) character set ascii collate ascii_bin,
    `occupant_id` varchar(255) character set utf8mb4 collate utf8mb4_bin,
    `seen_version` varchar(255) character set ascii collate ascii_bin,
    `delete_version` varchar(255) character set ascii collate ascii_bin,
    primary key (`id`)
) engine = InnoDB default character set utf8mb4;
create table `booking_occupants` (
    `id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `occupant_id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `status` longtext character set utf8mb4,
    `moves` bigint,
    `row_version` varchar(255) character set ascii collate ascii_bin,
    `occupant_since` varchar(255) character set ascii collate ascii_bin,
    `seen_version` varchar(255) character set ascii collate ascii_bin,
    `delete_version` varchar(255) character set ascii collate ascii_bin,
    `deleted_at` datetime(6),
    primary key (`id`, `occupant_id`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_links` (
    `table_name` varbinary(256) not null,
    `old` varbinary(1200) not null,
    `new` varbinary(1200) not null,
    primary key (`table_name`, `old`, `new`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_aliases` (
    `table_name` varbinary(256) not null,
    `identity` varbinary(1200) not null,
    `root` varbinary(1200) not null,
    primary key (`table_name`, `identity`),
    key `root` (`table_name`, `root`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_ledger` (
    `table_name` varbinary(256) not null,
    `key` varbinary(1200) not null,
    `column_name` varbinary(256) not null,
    `identity` varbinary(1200) not null,
    `version` varchar(255) character set ascii collate ascii_bin not null,
    `amount` longtext character set ascii collate ascii_bin not null,
    primary key (`table_name`, `key`, `column_name`, `identity`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_locks` (
    `n` int not null,
    primary key (`n`)
) engine = InnoDB default character set utf8mb4;

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the table's numbers, ascending; their rows are locked until the transaction ends.
insert into `hookfold_locks` (n)
select v.p1 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
on duplicate key update n = `hookfold_locks`.n;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select convert(t.`identity` using utf8mb4), convert(t.`root` using utf8mb4) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_aliases` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`identity` = cast(v.p2 as binary);

-- their other identities,
select convert(t.`identity` using utf8mb4), convert(t.`root` using utf8mb4) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_aliases` as t force index (`root`) on t.`table_name` = cast(v.p1 as binary) and t.`root` = cast(v.p2 as binary);

-- and what follows what:
select convert(t.`old` using utf8mb4), convert(t.`new` using utf8mb4) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_links` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`old` = cast(v.p2 as binary);

-- Read and lock rows:
--   v.p1 id: key, text
select v.hookfold_n, t.`id`, t.`status`, cast(t.`moves` as char), t.`row_version`, t.`occupant_since`, t.`occupant_id`, t.`seen_version`, t.`delete_version`
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `booking` as t force index (`PRIMARY`) on t.`id` = v.p1
for update;

-- Read all records of the keys:
--   v.p1 id: key, text
select v.hookfold_n, t.`id`, t.`occupant_id`, t.`status`, cast(t.`moves` as char), t.`row_version`, t.`occupant_since`, t.`seen_version`, t.`delete_version`, date_format(t.`deleted_at`, '%Y-%m-%dT%H:%i:%s.%fZ')
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `booking_occupants` as t force index (`PRIMARY`) on t.`id` = v.p1;

-- Read which events were counted:
select convert(t.`key` using utf8mb4), convert(t.`column_name` using utf8mb4), convert(t.`identity` using utf8mb4), t.`version`, t.`amount` from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v
straight_join `hookfold_ledger` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary) and t.`column_name` = cast(v.p3 as binary) and t.`identity` = cast(v.p4 as binary);

-- or all of them, where chains join:
select convert(t.`key` using utf8mb4), convert(t.`column_name` using utf8mb4), convert(t.`identity` using utf8mb4), t.`version`, t.`amount` from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_ledger` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary);

-- Remove rows:
--   v.p1 id: key, text
delete t
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `booking` as t force index (`PRIMARY`) on t.`id` = v.p1;

-- Give a row the key of its chain:
--   v.p1 old: key, text
--   v.p2 new: key, text
update (select v.p1 as p1,
    v.p2 as p2
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v) as excluded
straight_join `booking` as t force index (`PRIMARY`) on t.`id` = excluded.p1
set t.`id` = excluded.p2;

-- Change rows:
--   v.p1 id: key, text
--   v.p2 status: text, latest, set if row_version is not NULL
--   v.p3 moves: int, count
--   v.p4 row_version: version of scope row, NULL if it is not set
--   v.p5 occupant_since: since when the occupant holds the row, NULL if unknown
--   v.p6 occupant_id: the occupant
--   v.p7 seen_version: the greatest version of the row's writes
--   v.p8 delete_version: the version of its delete, NULL if there is none
update (select v.p1 as p1,
    v.p2 as p2,
    cast(v.p3 as signed) as p3,
    v.p4 as p4,
    v.p5 as p5,
    v.p6 as p6,
    v.p7 as p7,
    v.p8 as p8
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]')) as v) as excluded
straight_join `booking` as t force index (`PRIMARY`) on t.`id` = excluded.p1
set t.`status` = excluded.p2,
    t.`moves` = excluded.p3,
    t.`row_version` = excluded.p4,
    t.`occupant_since` = excluded.p5,
    t.`occupant_id` = excluded.p6,
    t.`seen_version` = excluded.p7,
    t.`delete_version` = excluded.p8;

-- Insert rows:
-- The same parameters.
insert into `booking` (`id`, `status`, `moves`, `row_version`, `occupant_since`, `occupant_id`, `seen_version`, `delete_version`)
select v.p1,
    v.p2,
    cast(v.p3 as signed),
    v.p4,
    v.p5,
    v.p6,
    v.p7,
    v.p8
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]')) as v
on duplicate key update `id` = `booking`.`id`;

-- Store records:
--   v.p1 id: key, text
--   v.p2 occupant_id: the occupant, or an empty text for what belongs to the row itself
--   v.p3 status: text, latest, set if row_version is not NULL
--   v.p4 moves: int, count
--   v.p5 row_version: version of scope row, NULL if it is not set
--   v.p6 occupant_since: since when the occupant holds the row, NULL if unknown
--   v.p7 seen_version: the greatest version of the row's writes
--   v.p8 delete_version: the version of its delete, NULL if there is none
--   v.p9 deleted_at: the time of its delete, timestamp
insert into `booking_occupants` (`id`, `occupant_id`, `status`, `moves`, `row_version`, `occupant_since`, `seen_version`, `delete_version`, `deleted_at`)
select v.p1,
    v.p2,
    v.p3,
    cast(v.p4 as signed),
    v.p5,
    v.p6,
    v.p7,
    v.p8,
    cast(v.p9 as datetime(6))
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]', p9 longtext character set utf8mb4 collate utf8mb4_bin path '$[8]')) as v
on duplicate key update
    `status` = values(`status`),
    `moves` = values(`moves`),
    `row_version` = values(`row_version`),
    `occupant_since` = values(`occupant_since`),
    `seen_version` = values(`seen_version`),
    `delete_version` = values(`delete_version`),
    `deleted_at` = values(`deleted_at`);

-- Remove the records of a key that is no chain's any more:
--   v.p1 id: key, text
delete t
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `booking_occupants` as t force index (`PRIMARY`) on t.`id` = v.p1;

-- Remember links:
insert into `hookfold_links` (`table_name`, `old`, `new`)
select v.p1, v.p2, v.p3 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]')) as v
on duplicate key update `table_name` = `hookfold_links`.`table_name`;

-- Point identities to their chain:
insert into `hookfold_aliases` (`table_name`, `identity`, `root`)
select v.p1, v.p2, v.p3 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]')) as v
on duplicate key update `root` = values(`root`);

-- Remember what was counted:
insert into `hookfold_ledger` (`table_name`, `key`, `column_name`, `identity`, `version`, `amount`)
select v.p1, v.p2, v.p3, v.p4, v.p5, v.p6 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]')) as v
on duplicate key update `version` = values(`version`), `amount` = values(`amount`);

-- Forget it of a key that is no chain's any more:
delete t from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_ledger` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary);

==== sqlserver

-- Table booking for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [booking] (
    [id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [status] nvarchar(max),
    [moves] bigint,
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    [occupant_since] nvarchar(450) collate Latin1_General_BIN2,
    [occupant_id] nvarchar(450) collate Latin1_General_BIN2,
    [seen_version] nvarchar(450) collate Latin1_General_BIN2,
    [delete_version] nvarchar(450) collate Latin1_General_BIN2,
    primary key ([id])
);
create table [booking_occupants] (
    [id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [occupant_id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [status] nvarchar(max),
    [moves] bigint,
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    [occupant_since] nvarchar(450) collate Latin1_General_BIN2,
    [seen_version] nvarchar(450) collate Latin1_General_BIN2,
    [delete_version] nvarchar(450) collate Latin1_General_BIN2,
    [deleted_at] datetimeoffset(6),
    primary key ([id], [occupant_id])
);
if object_id(N'[hookfold_links]', N'U') is null
create table [hookfold_links] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [old] nvarchar(500) collate Latin1_General_BIN2 not null,
    [new] nvarchar(500) collate Latin1_General_BIN2 not null,
    primary key nonclustered ([table_name], [old], [new])
);
if object_id(N'[hookfold_aliases]', N'U') is null
create table [hookfold_aliases] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [identity] nvarchar(500) collate Latin1_General_BIN2 not null,
    [root] nvarchar(500) collate Latin1_General_BIN2 not null,
    primary key nonclustered ([table_name], [identity])
);
if not exists (select 1 from sys.indexes where name = N'hookfold_aliases_root' and object_id = object_id(N'[hookfold_aliases]'))
create index [hookfold_aliases_root] on [hookfold_aliases] ([table_name], [root]);
if object_id(N'[hookfold_ledger]', N'U') is null
create table [hookfold_ledger] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [key] nvarchar(500) collate Latin1_General_BIN2 not null,
    [column_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [identity] nvarchar(500) collate Latin1_General_BIN2 not null,
    [version] nvarchar(255) collate Latin1_General_BIN2 not null,
    [amount] decimal(38,18) not null,
    primary key nonclustered ([table_name], [key], [column_name], [identity])
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the table's numbers, ascending, each by:
exec @got = sp_getapplock @Resource = N'hookfold 0', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 1000;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select t.[identity], t.[root] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_aliases] as t on t.[table_name] = @table and t.[identity] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- their other identities,
select t.[identity], t.[root] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_aliases] as t on t.[table_name] = @table and t.[root] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[root] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- and what follows what:
select t.[old], t.[new] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_links] as t on t.[table_name] = @table and t.[old] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[old] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Read and lock rows:
--   p1 id: key, text
select v.n, t.[id], t.[status], t.[moves], t.[row_version], t.[occupant_since], t.[occupant_id], t.[seen_version], t.[delete_version]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
join [booking] as t with (updlock, rowlock) on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2
order by v.n;

-- Read all records of the keys:
--   p1 id: key, text
select v.n, t.[id], t.[occupant_id], t.[status], t.[moves], t.[row_version], t.[occupant_since], t.[seen_version], t.[delete_version], t.[deleted_at]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
join [booking_occupants] as t on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Read which events were counted:
select t.[key], t.[column_name], t.[identity], t.[version], convert(varchar(50), t.[amount]) from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4') as v join [hookfold_ledger] as t on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and t.[column_name] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) and t.[identity] = cast(v.p4 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p4 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- or all of them, where chains join:
select t.[key], t.[column_name], t.[identity], t.[version], convert(varchar(50), t.[amount]) from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_ledger] as t on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));

-- Remove rows:
--   p1 id: key, text
delete t
from [booking] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Give a row the key of its chain:
--   p1 old: key, text
--   p2 new: key, text
update t
set [id] = excluded.p2
from [booking] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) as p2
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2') as v) as excluded on t.[id] = excluded.p1 and (t.[id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2;

-- Change rows:
--   p1 id: key, text
--   p2 status: text, latest, set if row_version is not NULL
--   p3 moves: int, count
--   p4 row_version: version of scope row, NULL if it is not set
--   p5 occupant_since: since when the occupant holds the row, NULL if unknown
--   p6 occupant_id: the occupant
--   p7 seen_version: the greatest version of the row's writes
--   p8 delete_version: the version of its delete, NULL if there is none
update t
set [status] = excluded.p2,
    [moves] = excluded.p3,
    [row_version] = excluded.p4,
    [occupant_since] = excluded.p5,
    [occupant_id] = excluded.p6,
    [seen_version] = excluded.p7,
    [delete_version] = excluded.p8
from [booking] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, v.p2 as p2, cast(v.p3 as bigint) as p3, v.p4 collate Latin1_General_BIN2 as p4, v.p5 collate Latin1_General_BIN2 as p5, cast(v.p6 collate Latin1_General_BIN2 as nvarchar(4000)) as p6, v.p7 collate Latin1_General_BIN2 as p7, v.p8 collate Latin1_General_BIN2 as p8
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8') as v) as excluded on t.[id] = excluded.p1 and (t.[id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where (((cast(excluded.p2 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p2 is null and t.[status] is not null) or (excluded.p2 is not null and t.[status] is null))
   or (excluded.p3 <> t.[moves] or (excluded.p3 is null and t.[moves] is not null) or (excluded.p3 is not null and t.[moves] is null))
   or (excluded.p4 <> t.[row_version] or (excluded.p4 is null and t.[row_version] is not null) or (excluded.p4 is not null and t.[row_version] is null))
   or (excluded.p5 <> t.[occupant_since] or (excluded.p5 is null and t.[occupant_since] is not null) or (excluded.p5 is not null and t.[occupant_since] is null))
   or ((cast(excluded.p6 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[occupant_id] as nvarchar(max)) + N'.' or (excluded.p6 is null and t.[occupant_id] is not null) or (excluded.p6 is not null and t.[occupant_id] is null))
   or (excluded.p7 <> t.[seen_version] or (excluded.p7 is null and t.[seen_version] is not null) or (excluded.p7 is not null and t.[seen_version] is null))
   or (excluded.p8 <> t.[delete_version] or (excluded.p8 is null and t.[delete_version] is not null) or (excluded.p8 is not null and t.[delete_version] is null)));

-- Insert rows:
-- The same parameters.
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [booking] ([id], [status], [moves], [row_version], [occupant_since], [occupant_id], [seen_version], [delete_version])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p2,
    cast(v.p3 as bigint),
    v.p4 collate Latin1_General_BIN2,
    v.p5 collate Latin1_General_BIN2,
    cast(v.p6 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p7 collate Latin1_General_BIN2,
    v.p8 collate Latin1_General_BIN2
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8') as v
where not exists (select 1 from [booking] as t where t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
set @hookfold_tries = 0;
end try
begin catch
set @hookfold_tries = @hookfold_tries - 1;
if @hookfold_tries = 0 or xact_state() = -1 or not (error_number() in (2601, 2627))
begin
    throw;
end;
end catch;
end;

-- Store records:
--   p1 id: key, text
--   p2 occupant_id: the occupant, or an empty text for what belongs to the row itself
--   p3 status: text, latest, set if row_version is not NULL
--   p4 moves: int, count
--   p5 row_version: version of scope row, NULL if it is not set
--   p6 occupant_since: since when the occupant holds the row, NULL if unknown
--   p7 seen_version: the greatest version of the row's writes
--   p8 delete_version: the version of its delete, NULL if there is none
--   p9 deleted_at: the time of its delete, timestamp
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [booking_occupants] ([id], [occupant_id], [status], [moves], [row_version], [occupant_since], [seen_version], [delete_version], [deleted_at])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p3,
    cast(v.p4 as bigint),
    v.p5 collate Latin1_General_BIN2,
    v.p6 collate Latin1_General_BIN2,
    v.p7 collate Latin1_General_BIN2,
    v.p8 collate Latin1_General_BIN2,
    cast(replace(v.p9, N'Z', N'+00:00') as datetimeoffset(6))
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9') as v
where not exists (select 1 from [booking_occupants] as t where t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[occupant_id] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[occupant_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
update t
set [status] = excluded.p3,
    [moves] = excluded.p4,
    [row_version] = excluded.p5,
    [occupant_since] = excluded.p6,
    [seen_version] = excluded.p7,
    [delete_version] = excluded.p8,
    [deleted_at] = excluded.p9
from [booking_occupants] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) as p2, v.p3 as p3, cast(v.p4 as bigint) as p4, v.p5 collate Latin1_General_BIN2 as p5, v.p6 collate Latin1_General_BIN2 as p6, v.p7 collate Latin1_General_BIN2 as p7, v.p8 collate Latin1_General_BIN2 as p8, cast(replace(v.p9, N'Z', N'+00:00') as datetimeoffset(6)) as p9
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9') as v) as excluded on t.[id] = excluded.p1 and (t.[id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2 and t.[occupant_id] = excluded.p2 and (t.[occupant_id] + N'.') collate Latin1_General_BIN2 = (excluded.p2 + N'.') collate Latin1_General_BIN2
where (((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[status] is not null) or (excluded.p3 is not null and t.[status] is null))
   or (excluded.p4 <> t.[moves] or (excluded.p4 is null and t.[moves] is not null) or (excluded.p4 is not null and t.[moves] is null))
   or (excluded.p5 <> t.[row_version] or (excluded.p5 is null and t.[row_version] is not null) or (excluded.p5 is not null and t.[row_version] is null))
   or (excluded.p6 <> t.[occupant_since] or (excluded.p6 is null and t.[occupant_since] is not null) or (excluded.p6 is not null and t.[occupant_since] is null))
   or (excluded.p7 <> t.[seen_version] or (excluded.p7 is null and t.[seen_version] is not null) or (excluded.p7 is not null and t.[seen_version] is null))
   or (excluded.p8 <> t.[delete_version] or (excluded.p8 is null and t.[delete_version] is not null) or (excluded.p8 is not null and t.[delete_version] is null))
   or (excluded.p9 <> t.[deleted_at] or (excluded.p9 is null and t.[deleted_at] is not null) or (excluded.p9 is not null and t.[deleted_at] is null)));
set @hookfold_tries = 0;
end try
begin catch
set @hookfold_tries = @hookfold_tries - 1;
if @hookfold_tries = 0 or xact_state() = -1 or not (error_number() in (2601, 2627))
begin
    throw;
end;
end catch;
end;

-- Remove the records of a key that is no chain's any more:
--   p1 id: key, text
delete t
from [booking_occupants] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Remember links:
insert into [hookfold_links] ([table_name], [old], [new])
select @table, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3') as v
where not exists (select 1 from [hookfold_links] as t where t.[table_name] = @table and t.[old] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[old] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[new] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[new] + N'.') collate Latin1_General_BIN2 = (cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);

-- Point identities to their chain:
update t set [root] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000))
from [hookfold_aliases] as t join openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3') as v on t.[table_name] = @table and t.[identity] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;
insert into [hookfold_aliases] ([table_name], [identity], [root])
select @table, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3') as v
where not exists (select 1 from [hookfold_aliases] as t where t.[table_name] = @table and t.[identity] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);

-- Remember what was counted:
update t set [version] = cast(v.p5 collate Latin1_General_BIN2 as nvarchar(4000)),
    [amount] = cast(v.p6 as decimal(38,18))
from [hookfold_ledger] as t join openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6') as v on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and t.[column_name] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) and t.[identity] = cast(v.p4 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p4 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;
insert into [hookfold_ledger] ([table_name], [key], [column_name], [identity], [version], [amount])
select @table, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p4 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p5 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p6 as decimal(38,18)) from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6') as v
where not exists (select 1 from [hookfold_ledger] as t where t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and t.[column_name] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) and t.[identity] = cast(v.p4 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p4 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);

-- Forget it of a key that is no chain's any more:
delete t from [hookfold_ledger] as t join openjson(@rows) with (p2 nvarchar(max) '$.p2') as v on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));

