==== postgres

-- Table booking for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table booking (
    ref text collate "C" not null,
    status text,
    invitee text,
    no_show boolean,
    channel text,
    changed_at timestamp with time zone,
    row_version text collate "C",
    key_version text collate "C",
    no_show_version text collate "C",
    occupant_since text collate "C",
    occupant_id text collate "C",
    primary key (ref)
);
create table booking_occupants (
    ref text collate "C" not null,
    occupant_id text collate "C" not null,
    status text,
    invitee text,
    no_show boolean,
    row_version text collate "C",
    no_show_version text collate "C",
    occupant_since text collate "C",
    primary key (ref, occupant_id)
);

-- Join rows into the records of their occupants:
--   $1 ref: key, text
--   $2 occupant_id: the occupant
--   $3 status: text, latest, set if row_version is not NULL
--   $4 invitee: text, latest, set if row_version is not NULL
--   $5 no_show: bool, latest, set if no_show_version is not NULL
--   $6 row_version: version of scope row, NULL if it is not set
--   $7 no_show_version: version of scope no_show, NULL if it is not set
--   $8 occupant_since: since when the occupant holds the row, NULL if unknown
insert into booking_occupants as t (ref, occupant_id, status, invitee, no_show, row_version, no_show_version, occupant_since)
select v.p1,
    v.p2,
    v.p3,
    v.p4,
    v.p5::boolean,
    v.p6,
    v.p7,
    v.p8
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8)
on conflict (ref, occupant_id) do update set
    status = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.status else t.status end,
    invitee = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.invitee else t.invitee end,
    row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end,
    no_show = case when excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" then excluded.no_show else t.no_show end,
    no_show_version = case when excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" then excluded.no_show_version else t.no_show_version end,
    occupant_since = case when excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate "C" > t.occupant_since collate "C") then excluded.occupant_since else t.occupant_since end
where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.status is distinct from t.status or excluded.invitee is distinct from t.invitee or excluded.row_version is distinct from t.row_version))
   or (excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" and (excluded.no_show is distinct from t.no_show or excluded.no_show_version is distinct from t.no_show_version))
   or (excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate "C" > t.occupant_since collate "C"));

-- Then, in the same transaction, show the records: the newest occupant of each key takes the row.
--   $1 ref: key, text
--   $2 occupant_id: the occupant
--   $3 channel: text, latest, set if key_version is not NULL
--   $4 key_version: version of scope key, NULL if it is not set
insert into booking as t (ref, status, invitee, no_show, row_version, no_show_version, occupant_since, occupant_id, channel, key_version, changed_at)
select p.ref,
    p.status,
    p.invitee,
    p.no_show,
    p.row_version,
    p.no_show_version,
    p.occupant_since,
    p.occupant_id,
    p.channel,
    p.key_version,
    clock_timestamp()
from (select distinct on (v.p1) v.hookfold_n, v.p1 as ref, o.status as status, o.invitee as invitee, o.no_show as no_show, o.row_version as row_version, o.no_show_version as no_show_version, o.occupant_since as occupant_since, o.occupant_id as occupant_id, v.p3 as channel, v.p4 as key_version
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as v (p1, p2, p3, p4, hookfold_n)
    join booking_occupants as o on o.ref = v.p1 and o.occupant_id = v.p2
    order by v.p1, coalesce(o.occupant_since, '') collate "C" desc, o.occupant_id collate "C" desc) as p
where true
order by p.hookfold_n
on conflict (ref) do update set
    status = excluded.status,
    invitee = excluded.invitee,
    no_show = excluded.no_show,
    row_version = excluded.row_version,
    no_show_version = excluded.no_show_version,
    occupant_since = excluded.occupant_since,
    occupant_id = excluded.occupant_id,
    changed_at = case when excluded.status is distinct from t.status or excluded.invitee is distinct from t.invitee or excluded.no_show is distinct from t.no_show then clock_timestamp() else t.changed_at end
where (coalesce(excluded.occupant_since, '') collate "C", coalesce(excluded.occupant_id, '') collate "C", coalesce(excluded.row_version, '') collate "C")
    >= (coalesce(t.occupant_since, '') collate "C", coalesce(t.occupant_id, '') collate "C", coalesce(t.row_version, '') collate "C")
  and (excluded.status is distinct from t.status or excluded.invitee is distinct from t.invitee or excluded.no_show is distinct from t.no_show or excluded.row_version is distinct from t.row_version or excluded.no_show_version is distinct from t.no_show_version or excluded.occupant_since is distinct from t.occupant_since or excluded.occupant_id is distinct from t.occupant_id);

-- The same for rows that are there:
-- The same parameters.
update booking as t
set status = excluded.status,
    invitee = excluded.invitee,
    no_show = excluded.no_show,
    row_version = excluded.row_version,
    no_show_version = excluded.no_show_version,
    occupant_since = excluded.occupant_since,
    occupant_id = excluded.occupant_id,
    changed_at = case when excluded.status is distinct from t.status or excluded.invitee is distinct from t.invitee or excluded.no_show is distinct from t.no_show then clock_timestamp() else t.changed_at end
from (select distinct on (v.p1) v.hookfold_n, v.p1 as ref, o.status as status, o.invitee as invitee, o.no_show as no_show, o.row_version as row_version, o.no_show_version as no_show_version, o.occupant_since as occupant_since, o.occupant_id as occupant_id
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) with ordinality as v (p1, p2, p3, p4, hookfold_n)
    join booking_occupants as o on o.ref = v.p1 and o.occupant_id = v.p2
    order by v.p1, coalesce(o.occupant_since, '') collate "C" desc, o.occupant_id collate "C" desc) as excluded
where t.ref = excluded.ref
  and (coalesce(excluded.occupant_since, '') collate "C", coalesce(excluded.occupant_id, '') collate "C", coalesce(excluded.row_version, '') collate "C")
    >= (coalesce(t.occupant_since, '') collate "C", coalesce(t.occupant_id, '') collate "C", coalesce(t.row_version, '') collate "C")
  and (excluded.status is distinct from t.status or excluded.invitee is distinct from t.invitee or excluded.no_show is distinct from t.no_show or excluded.row_version is distinct from t.row_version or excluded.no_show_version is distinct from t.no_show_version or excluded.occupant_since is distinct from t.occupant_since or excluded.occupant_id is distinct from t.occupant_id);

-- Join what belongs to the rows themselves, whoever occupies them:
--   $1 ref: key, text
--   $2 channel: text, latest, set if key_version is not NULL
--   $3 key_version: version of scope key, NULL if it is not set
insert into booking as t (ref, channel, key_version)
select v.p1,
    v.p2,
    v.p3
from unnest($1::text[], $2::text[], $3::text[]) as v (p1, p2, p3)
on conflict (ref) do update set
    channel = case when excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.channel else t.channel end,
    key_version = case when excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.key_version else t.key_version end
where (excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" and (excluded.channel is distinct from t.channel or excluded.key_version is distinct from t.key_version));

-- Join into rows that are there, and insert none:
-- The same parameters.
update booking as t
set channel = case when excluded.p3 collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.p2 else t.channel end,
    key_version = case when excluded.p3 collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.p3 else t.key_version end
from (select v.p1 as p1,
    v.p2 as p2,
    v.p3 as p3
    from unnest($1::text[], $2::text[], $3::text[]) as v (p1, p2, p3)) as excluded
where t.ref = excluded.p1
  and ((excluded.p3 collate "C" >= coalesce(t.key_version, '') collate "C" and (excluded.p2 is distinct from t.channel or excluded.p3 is distinct from t.key_version)));

==== sqlite

-- Table booking for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table booking (
    ref text not null,
    status text,
    invitee text,
    no_show integer,
    channel text,
    changed_at text,
    row_version text,
    key_version text,
    no_show_version text,
    occupant_since text,
    occupant_id text,
    primary key (ref)
);
create table booking_occupants (
    ref text not null,
    occupant_id text not null,
    status text,
    invitee text,
    no_show integer,
    row_version text,
    no_show_version text,
    occupant_since text,
    primary key (ref, occupant_id)
);

-- Join rows into the records of their occupants:
--   ?1 ref: key, text
--   ?2 occupant_id: the occupant
--   ?3 status: text, latest, set if row_version is not NULL
--   ?4 invitee: text, latest, set if row_version is not NULL
--   ?5 no_show: bool, latest, set if no_show_version is not NULL
--   ?6 row_version: version of scope row, NULL if it is not set
--   ?7 no_show_version: version of scope no_show, NULL if it is not set
--   ?8 occupant_since: since when the occupant holds the row, NULL if unknown
insert into booking_occupants as t (ref, occupant_id, status, invitee, no_show, row_version, no_show_version, occupant_since)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5,
    ?6,
    ?7,
    ?8)
on conflict (ref, occupant_id) do update set
    status = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.status else t.status end,
    invitee = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.invitee else t.invitee end,
    row_version = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.row_version else t.row_version end,
    no_show = case when excluded.no_show_version collate binary >= coalesce(t.no_show_version, '') collate binary then excluded.no_show else t.no_show end,
    no_show_version = case when excluded.no_show_version collate binary >= coalesce(t.no_show_version, '') collate binary then excluded.no_show_version else t.no_show_version end,
    occupant_since = case when excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate binary > t.occupant_since) then excluded.occupant_since else t.occupant_since end
where (excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary and (excluded.status collate binary is not t.status or excluded.invitee collate binary is not t.invitee or excluded.row_version collate binary is not t.row_version))
   or (excluded.no_show_version collate binary >= coalesce(t.no_show_version, '') collate binary and (excluded.no_show is not t.no_show or excluded.no_show_version collate binary is not t.no_show_version))
   or (excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate binary > t.occupant_since));

-- Then, in the same transaction, show the records: the newest occupant of each key takes the row.
--   ?1 ref: key, text
--   ?2 occupant_id: the occupant
--   ?3 channel: text, latest, set if key_version is not NULL
--   ?4 key_version: version of scope key, NULL if it is not set
insert into booking as t (ref, status, invitee, no_show, row_version, no_show_version, occupant_since, occupant_id, channel, key_version, changed_at)
select p.ref,
    p.status,
    p.invitee,
    p.no_show,
    p.row_version,
    p.no_show_version,
    p.occupant_since,
    p.occupant_id,
    p.channel,
    p.key_version,
    strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z'
from (select ?1 as ref, o.status as status, o.invitee as invitee, o.no_show as no_show, o.row_version as row_version, o.no_show_version as no_show_version, o.occupant_since as occupant_since, o.occupant_id as occupant_id, ?3 as channel, ?4 as key_version
    from booking_occupants as o
    where o.ref = ?1 and o.occupant_id = ?2) as p
where true
on conflict (ref) do update set
    status = excluded.status,
    invitee = excluded.invitee,
    no_show = excluded.no_show,
    row_version = excluded.row_version,
    no_show_version = excluded.no_show_version,
    occupant_since = excluded.occupant_since,
    occupant_id = excluded.occupant_id,
    changed_at = case when excluded.status collate binary is not t.status or excluded.invitee collate binary is not t.invitee or excluded.no_show is not t.no_show then strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z' else t.changed_at end
where (coalesce(excluded.occupant_since, '') collate binary, coalesce(excluded.occupant_id, '') collate binary, coalesce(excluded.row_version, '') collate binary)
    >= (coalesce(t.occupant_since, '') collate binary, coalesce(t.occupant_id, '') collate binary, coalesce(t.row_version, '') collate binary)
  and (excluded.status collate binary is not t.status or excluded.invitee collate binary is not t.invitee or excluded.no_show is not t.no_show or excluded.row_version collate binary is not t.row_version or excluded.no_show_version collate binary is not t.no_show_version or excluded.occupant_since collate binary is not t.occupant_since or excluded.occupant_id collate binary is not t.occupant_id);

-- The same for rows that are there:
-- The same parameters.
update booking as t
set status = excluded.status,
    invitee = excluded.invitee,
    no_show = excluded.no_show,
    row_version = excluded.row_version,
    no_show_version = excluded.no_show_version,
    occupant_since = excluded.occupant_since,
    occupant_id = excluded.occupant_id,
    changed_at = case when excluded.status collate binary is not t.status or excluded.invitee collate binary is not t.invitee or excluded.no_show is not t.no_show then strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z' else t.changed_at end
from (select ?1 as ref, o.status as status, o.invitee as invitee, o.no_show as no_show, o.row_version as row_version, o.no_show_version as no_show_version, o.occupant_since as occupant_since, o.occupant_id as occupant_id
    from booking_occupants as o
    where o.ref = ?1 and o.occupant_id = ?2) as excluded
where t.ref = excluded.ref
  and (coalesce(excluded.occupant_since, '') collate binary, coalesce(excluded.occupant_id, '') collate binary, coalesce(excluded.row_version, '') collate binary)
    >= (coalesce(t.occupant_since, '') collate binary, coalesce(t.occupant_id, '') collate binary, coalesce(t.row_version, '') collate binary)
  and (excluded.status collate binary is not t.status or excluded.invitee collate binary is not t.invitee or excluded.no_show is not t.no_show or excluded.row_version collate binary is not t.row_version or excluded.no_show_version collate binary is not t.no_show_version or excluded.occupant_since collate binary is not t.occupant_since or excluded.occupant_id collate binary is not t.occupant_id);

-- Join what belongs to the rows themselves, whoever occupies them:
--   ?1 ref: key, text
--   ?2 channel: text, latest, set if key_version is not NULL
--   ?3 key_version: version of scope key, NULL if it is not set
insert into booking as t (ref, channel, key_version)
values (?1,
    ?2,
    ?3)
on conflict (ref) do update set
    channel = case when excluded.key_version collate binary >= coalesce(t.key_version, '') collate binary then excluded.channel else t.channel end,
    key_version = case when excluded.key_version collate binary >= coalesce(t.key_version, '') collate binary then excluded.key_version else t.key_version end
where (excluded.key_version collate binary >= coalesce(t.key_version, '') collate binary and (excluded.channel collate binary is not t.channel or excluded.key_version collate binary is not t.key_version));

-- Join into rows that are there, and insert none:
-- The same parameters.
update booking as t
set channel = case when excluded.p3 collate binary >= coalesce(t.key_version, '') collate binary then excluded.p2 else t.channel end,
    key_version = case when excluded.p3 collate binary >= coalesce(t.key_version, '') collate binary then excluded.p3 else t.key_version end
from (select ?1 as p1, ?2 as p2, ?3 as p3) as excluded
where t.ref = excluded.p1
  and ((excluded.p3 collate binary >= coalesce(t.key_version, '') collate binary and (excluded.p2 collate binary is not t.channel or excluded.p3 collate binary is not t.key_version)));

==== mysql

-- Table booking for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `booking` (
    `ref` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `status` longtext character set utf8mb4,
    `invitee` longtext character set utf8mb4,
    `no_show` tinyint(1),
    `channel` longtext character set utf8mb4,
    `changed_at` datetime(6),
    `row_version` varchar(255) character set ascii collate ascii_bin,
    `key_version` varchar(255) character set ascii collate ascii_bin,
    `no_show_version` varchar(255) character set ascii collate ascii_bin,
    `occupant_since` varchar(255) character set ascii collate ascii_bin,
    `occupant_id` varchar(255) character set utf8mb4 collate utf8mb4_bin,
    primary key (`ref`)
) engine = InnoDB default character set utf8mb4;
create table `booking_occupants` (
    `ref` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `occupant_id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `status` longtext character set utf8mb4,
    `invitee` longtext character set utf8mb4,
    `no_show` tinyint(1),
    `row_version` varchar(255) character set ascii collate ascii_bin,
    `no_show_version` varchar(255) character set ascii collate ascii_bin,
    `occupant_since` varchar(255) character set ascii collate ascii_bin,
    primary key (`ref`, `occupant_id`)
) engine = InnoDB default character set utf8mb4;

-- Join rows into the records of their occupants:
--   v.p1 ref: key, text
--   v.p2 occupant_id: the occupant
--   v.p3 status: text, latest, set if row_version is not NULL
--   v.p4 invitee: text, latest, set if row_version is not NULL
--   v.p5 no_show: bool, latest, set if no_show_version is not NULL
--   v.p6 row_version: version of scope row, NULL if it is not set
--   v.p7 no_show_version: version of scope no_show, NULL if it is not set
--   v.p8 occupant_since: since when the occupant holds the row, NULL if unknown
insert into `booking_occupants` (`ref`, `occupant_id`, `status`, `invitee`, `no_show`, `row_version`, `no_show_version`, `occupant_since`)
select v.p1,
    v.p2,
    v.p3,
    v.p4,
    cast(v.p5 as signed),
    v.p6,
    v.p7,
    v.p8
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]')) as v
on duplicate key update
    `status` = case when cast(values(`row_version`) as binary) >= cast(coalesce(`booking_occupants`.`row_version`, '') as binary) then values(`status`) else `booking_occupants`.`status` end,
    `invitee` = case when cast(values(`row_version`) as binary) >= cast(coalesce(`booking_occupants`.`row_version`, '') as binary) then values(`invitee`) else `booking_occupants`.`invitee` end,
    `row_version` = case when cast(values(`row_version`) as binary) >= cast(coalesce(`booking_occupants`.`row_version`, '') as binary) then values(`row_version`) else `booking_occupants`.`row_version` end,
    `no_show` = case when cast(values(`no_show_version`) as binary) >= cast(coalesce(`booking_occupants`.`no_show_version`, '') as binary) then values(`no_show`) else `booking_occupants`.`no_show` end,
    `no_show_version` = case when cast(values(`no_show_version`) as binary) >= cast(coalesce(`booking_occupants`.`no_show_version`, '') as binary) then values(`no_show_version`) else `booking_occupants`.`no_show_version` end,
    `occupant_since` = case when values(`occupant_since`) is not null and (`booking_occupants`.`occupant_since` is null or cast(convert(values(`occupant_since`) using utf8mb4) as binary) > cast(convert(`booking_occupants`.`occupant_since` using utf8mb4) as binary)) then values(`occupant_since`) else `booking_occupants`.`occupant_since` end;

-- Then, in the same transaction, show the records: the newest occupant of each key takes the row.
--   v.p1 ref: key, text
--   v.p2 occupant_id: the occupant
--   v.p3 channel: text, latest, set if key_version is not NULL
--   v.p4 key_version: version of scope key, NULL if it is not set
insert into `booking` (`ref`, `status`, `invitee`, `no_show`, `row_version`, `no_show_version`, `occupant_since`, `occupant_id`, `channel`, `key_version`, `changed_at`)
select p.`ref`,
    p.`status`,
    p.`invitee`,
    p.`no_show`,
    p.`row_version`,
    p.`no_show_version`,
    p.`occupant_since`,
    p.`occupant_id`,
    p.`channel`,
    p.`key_version`,
    utc_timestamp(6)
from (select * from (select v.hookfold_n as hookfold_n, v.p1 as `ref`, o.`status` as `status`, o.`invitee` as `invitee`, o.`no_show` as `no_show`, o.`row_version` as `row_version`, o.`no_show_version` as `no_show_version`, o.`occupant_since` as `occupant_since`, o.`occupant_id` as `occupant_id`, v.p3 as `channel`, v.p4 as `key_version`,
        row_number() over (partition by v.p1 order by cast(coalesce(o.`occupant_since`, '') as binary) desc, cast(o.`occupant_id` as binary) desc) as hookfold_rank
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v
    straight_join `booking_occupants` as o force index (`PRIMARY`) on o.`ref` = v.p1 and o.`occupant_id` = v.p2) as r where r.hookfold_rank = 1) as p
where true
order by p.hookfold_n
on duplicate key update
    `changed_at` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then case when not (cast(values(`status`) as binary) <=> cast(`booking`.`status` as binary)) or not (cast(values(`invitee`) as binary) <=> cast(`booking`.`invitee` as binary)) or not (values(`no_show`) <=> `booking`.`no_show`) then utc_timestamp(6) else `booking`.`changed_at` end else `booking`.`changed_at` end,
    `status` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then values(`status`) else `booking`.`status` end,
    `invitee` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then values(`invitee`) else `booking`.`invitee` end,
    `no_show` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then values(`no_show`) else `booking`.`no_show` end,
    `no_show_version` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then values(`no_show_version`) else `booking`.`no_show_version` end,
    `row_version` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then values(`row_version`) else `booking`.`row_version` end,
    `occupant_id` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then values(`occupant_id`) else `booking`.`occupant_id` end,
    `occupant_since` = case when (cast(coalesce(values(`occupant_since`), '') as binary), cast(coalesce(values(`occupant_id`), '') as binary), cast(coalesce(values(`row_version`), '') as binary))
    >= (cast(coalesce(`booking`.`occupant_since`, '') as binary), cast(coalesce(`booking`.`occupant_id`, '') as binary), cast(coalesce(`booking`.`row_version`, '') as binary))
      then values(`occupant_since`) else `booking`.`occupant_since` end;

-- The same for rows that are there:
-- The same parameters.
update (select * from (select v.hookfold_n as hookfold_n, v.p1 as `ref`, o.`status` as `status`, o.`invitee` as `invitee`, o.`no_show` as `no_show`, o.`row_version` as `row_version`, o.`no_show_version` as `no_show_version`, o.`occupant_since` as `occupant_since`, o.`occupant_id` as `occupant_id`,
        row_number() over (partition by v.p1 order by cast(coalesce(o.`occupant_since`, '') as binary) desc, cast(o.`occupant_id` as binary) desc) as hookfold_rank
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v
    straight_join `booking_occupants` as o force index (`PRIMARY`) on o.`ref` = v.p1 and o.`occupant_id` = v.p2) as r where r.hookfold_rank = 1) as excluded
straight_join `booking` as t force index (`PRIMARY`) on t.`ref` = excluded.`ref`
set t.`changed_at` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then case when not (cast(excluded.`status` as binary) <=> cast(t.`status` as binary)) or not (cast(excluded.`invitee` as binary) <=> cast(t.`invitee` as binary)) or not (excluded.`no_show` <=> t.`no_show`) then utc_timestamp(6) else t.`changed_at` end else t.`changed_at` end,
    t.`status` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then excluded.`status` else t.`status` end,
    t.`invitee` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then excluded.`invitee` else t.`invitee` end,
    t.`no_show` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then excluded.`no_show` else t.`no_show` end,
    t.`no_show_version` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then excluded.`no_show_version` else t.`no_show_version` end,
    t.`row_version` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then excluded.`row_version` else t.`row_version` end,
    t.`occupant_id` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then excluded.`occupant_id` else t.`occupant_id` end,
    t.`occupant_since` = case when (cast(coalesce(excluded.`occupant_since`, '') as binary), cast(coalesce(excluded.`occupant_id`, '') as binary), cast(coalesce(excluded.`row_version`, '') as binary))
    >= (cast(coalesce(t.`occupant_since`, '') as binary), cast(coalesce(t.`occupant_id`, '') as binary), cast(coalesce(t.`row_version`, '') as binary))
      then excluded.`occupant_since` else t.`occupant_since` end;

-- Join what belongs to the rows themselves, whoever occupies them:
--   v.p1 ref: key, text
--   v.p2 channel: text, latest, set if key_version is not NULL
--   v.p3 key_version: version of scope key, NULL if it is not set
insert into `booking` (`ref`, `channel`, `key_version`)
select v.p1,
    v.p2,
    v.p3
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]')) as v
on duplicate key update
    `channel` = case when cast(values(`key_version`) as binary) >= cast(coalesce(`booking`.`key_version`, '') as binary) then values(`channel`) else `booking`.`channel` end,
    `key_version` = case when cast(values(`key_version`) as binary) >= cast(coalesce(`booking`.`key_version`, '') as binary) then values(`key_version`) else `booking`.`key_version` end;

-- Join into rows that are there, and insert none:
-- The same parameters.
update (select v.p1 as p1,
    v.p2 as p2,
    v.p3 as p3
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]')) as v) as excluded
straight_join `booking` as t force index (`PRIMARY`) on t.`ref` = excluded.p1
set t.`channel` = case when cast(excluded.p3 as binary) >= cast(coalesce(t.`key_version`, '') as binary) then excluded.p2 else t.`channel` end,
    t.`key_version` = case when cast(excluded.p3 as binary) >= cast(coalesce(t.`key_version`, '') as binary) then excluded.p3 else t.`key_version` end;

==== sqlserver

-- Table booking for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [booking] (
    [ref] nvarchar(450) collate Latin1_General_BIN2 not null,
    [status] nvarchar(max),
    [invitee] nvarchar(max),
    [no_show] bit,
    [channel] nvarchar(max),
    [changed_at] datetimeoffset(6),
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    [key_version] nvarchar(450) collate Latin1_General_BIN2,
    [no_show_version] nvarchar(450) collate Latin1_General_BIN2,
    [occupant_since] nvarchar(450) collate Latin1_General_BIN2,
    [occupant_id] nvarchar(450) collate Latin1_General_BIN2,
    primary key ([ref])
);
create table [booking_occupants] (
    [ref] nvarchar(450) collate Latin1_General_BIN2 not null,
    [occupant_id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [status] nvarchar(max),
    [invitee] nvarchar(max),
    [no_show] bit,
    [channel] nvarchar(max),
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    [key_version] nvarchar(450) collate Latin1_General_BIN2,
    [no_show_version] nvarchar(450) collate Latin1_General_BIN2,
    [occupant_since] nvarchar(450) collate Latin1_General_BIN2,
    primary key ([ref], [occupant_id])
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the keys' numbers, ascending, each by:
exec @got = sp_getapplock @Resource = N'hookfold 0', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 1000;

-- Read and lock rows:
--   p1 ref: key, text
select v.n, t.[ref], t.[status], t.[invitee], t.[no_show], t.[channel], t.[row_version], t.[key_version], t.[no_show_version], t.[occupant_since], t.[occupant_id], t.[changed_at]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
join [booking] as t with (updlock, rowlock) on t.[ref] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[ref] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2
order by v.n;

-- Read all records of the keys:
--   p1 ref: key, text
select v.n, t.[ref], t.[occupant_id], t.[status], t.[invitee], t.[no_show], t.[channel], t.[row_version], t.[key_version], t.[no_show_version], t.[occupant_since]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
join [booking_occupants] as t on t.[ref] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[ref] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Remove rows:
--   p1 ref: key, text
delete t
from [booking] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v on t.[ref] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[ref] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Change rows:
--   p1 ref: key, text
--   p2 status: text, latest, set if row_version is not NULL
--   p3 invitee: text, latest, set if row_version is not NULL
--   p4 no_show: bool, latest, set if no_show_version is not NULL
--   p5 channel: text, latest, set if key_version is not NULL
--   p6 row_version: version of scope row, NULL if it is not set
--   p7 key_version: version of scope key, NULL if it is not set
--   p8 no_show_version: version of scope no_show, NULL if it is not set
--   p9 occupant_since: since when the occupant holds the row, NULL if unknown
--   p10 occupant_id: the occupant
update t
set [status] = excluded.p2,
    [invitee] = excluded.p3,
    [no_show] = excluded.p4,
    [channel] = case when excluded.p7 is null then t.[channel] else excluded.p5 end,
    [row_version] = excluded.p6,
    [key_version] = excluded.p7,
    [no_show_version] = excluded.p8,
    [occupant_since] = excluded.p9,
    [occupant_id] = excluded.p10,
    [changed_at] = case when ((cast(excluded.p2 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p2 is null and t.[status] is not null) or (excluded.p2 is not null and t.[status] is null))
      or ((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[invitee] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[invitee] is not null) or (excluded.p3 is not null and t.[invitee] is null))
      or (excluded.p4 <> t.[no_show] or (excluded.p4 is null and t.[no_show] is not null) or (excluded.p4 is not null and t.[no_show] is null))
      or ((cast(case when excluded.p7 is null then t.[channel] else excluded.p5 end as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[channel] as nvarchar(max)) + N'.' or (case when excluded.p7 is null then t.[channel] else excluded.p5 end is null and t.[channel] is not null) or (case when excluded.p7 is null then t.[channel] else excluded.p5 end is not null and t.[channel] is null)) then sysutcdatetime() else t.[changed_at] end
from [booking] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, v.p2 as p2, v.p3 as p3, cast(v.p4 as bit) as p4, v.p5 as p5, v.p6 collate Latin1_General_BIN2 as p6, v.p7 collate Latin1_General_BIN2 as p7, v.p8 collate Latin1_General_BIN2 as p8, v.p9 collate Latin1_General_BIN2 as p9, cast(v.p10 collate Latin1_General_BIN2 as nvarchar(4000)) as p10
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9', p10 nvarchar(max) '$.p10') as v) as excluded on t.[ref] = excluded.p1 and (t.[ref] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where (((cast(excluded.p2 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p2 is null and t.[status] is not null) or (excluded.p2 is not null and t.[status] is null))
   or ((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[invitee] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[invitee] is not null) or (excluded.p3 is not null and t.[invitee] is null))
   or (excluded.p4 <> t.[no_show] or (excluded.p4 is null and t.[no_show] is not null) or (excluded.p4 is not null and t.[no_show] is null))
   or ((cast(case when excluded.p7 is null then t.[channel] else excluded.p5 end as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[channel] as nvarchar(max)) + N'.' or (case when excluded.p7 is null then t.[channel] else excluded.p5 end is null and t.[channel] is not null) or (case when excluded.p7 is null then t.[channel] else excluded.p5 end is not null and t.[channel] is null))
   or (excluded.p6 <> t.[row_version] or (excluded.p6 is null and t.[row_version] is not null) or (excluded.p6 is not null and t.[row_version] is null))
   or (excluded.p7 <> t.[key_version] or (excluded.p7 is null and t.[key_version] is not null) or (excluded.p7 is not null and t.[key_version] is null))
   or (excluded.p8 <> t.[no_show_version] or (excluded.p8 is null and t.[no_show_version] is not null) or (excluded.p8 is not null and t.[no_show_version] is null))
   or (excluded.p9 <> t.[occupant_since] or (excluded.p9 is null and t.[occupant_since] is not null) or (excluded.p9 is not null and t.[occupant_since] is null))
   or ((cast(excluded.p10 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[occupant_id] as nvarchar(max)) + N'.' or (excluded.p10 is null and t.[occupant_id] is not null) or (excluded.p10 is not null and t.[occupant_id] is null)));

-- Insert rows:
-- The same parameters.
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [booking] ([ref], [status], [invitee], [no_show], [channel], [row_version], [key_version], [no_show_version], [occupant_since], [occupant_id], [changed_at])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p2,
    v.p3,
    cast(v.p4 as bit),
    v.p5,
    v.p6 collate Latin1_General_BIN2,
    v.p7 collate Latin1_General_BIN2,
    v.p8 collate Latin1_General_BIN2,
    v.p9 collate Latin1_General_BIN2,
    cast(v.p10 collate Latin1_General_BIN2 as nvarchar(4000)),
    sysutcdatetime()
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9', p10 nvarchar(max) '$.p10') as v
where not exists (select 1 from [booking] as t where t.[ref] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[ref] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
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
--   p1 ref: key, text
--   p2 occupant_id: the occupant, or an empty text for what belongs to the row itself
--   p3 status: text, latest, set if row_version is not NULL
--   p4 invitee: text, latest, set if row_version is not NULL
--   p5 no_show: bool, latest, set if no_show_version is not NULL
--   p6 channel: text, latest, set if key_version is not NULL
--   p7 row_version: version of scope row, NULL if it is not set
--   p8 key_version: version of scope key, NULL if it is not set
--   p9 no_show_version: version of scope no_show, NULL if it is not set
--   p10 occupant_since: since when the occupant holds the row, NULL if unknown
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [booking_occupants] ([ref], [occupant_id], [status], [invitee], [no_show], [channel], [row_version], [key_version], [no_show_version], [occupant_since])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p3,
    v.p4,
    cast(v.p5 as bit),
    v.p6,
    v.p7 collate Latin1_General_BIN2,
    v.p8 collate Latin1_General_BIN2,
    v.p9 collate Latin1_General_BIN2,
    v.p10 collate Latin1_General_BIN2
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9', p10 nvarchar(max) '$.p10') as v
where not exists (select 1 from [booking_occupants] as t where t.[ref] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[ref] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[occupant_id] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[occupant_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
update t
set [status] = excluded.p3,
    [invitee] = excluded.p4,
    [no_show] = excluded.p5,
    [channel] = excluded.p6,
    [row_version] = excluded.p7,
    [key_version] = excluded.p8,
    [no_show_version] = excluded.p9,
    [occupant_since] = excluded.p10
from [booking_occupants] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) as p2, v.p3 as p3, v.p4 as p4, cast(v.p5 as bit) as p5, v.p6 as p6, v.p7 collate Latin1_General_BIN2 as p7, v.p8 collate Latin1_General_BIN2 as p8, v.p9 collate Latin1_General_BIN2 as p9, v.p10 collate Latin1_General_BIN2 as p10
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9', p10 nvarchar(max) '$.p10') as v) as excluded on t.[ref] = excluded.p1 and (t.[ref] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2 and t.[occupant_id] = excluded.p2 and (t.[occupant_id] + N'.') collate Latin1_General_BIN2 = (excluded.p2 + N'.') collate Latin1_General_BIN2
where (((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[status] is not null) or (excluded.p3 is not null and t.[status] is null))
   or ((cast(excluded.p4 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[invitee] as nvarchar(max)) + N'.' or (excluded.p4 is null and t.[invitee] is not null) or (excluded.p4 is not null and t.[invitee] is null))
   or (excluded.p5 <> t.[no_show] or (excluded.p5 is null and t.[no_show] is not null) or (excluded.p5 is not null and t.[no_show] is null))
   or ((cast(excluded.p6 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[channel] as nvarchar(max)) + N'.' or (excluded.p6 is null and t.[channel] is not null) or (excluded.p6 is not null and t.[channel] is null))
   or (excluded.p7 <> t.[row_version] or (excluded.p7 is null and t.[row_version] is not null) or (excluded.p7 is not null and t.[row_version] is null))
   or (excluded.p8 <> t.[key_version] or (excluded.p8 is null and t.[key_version] is not null) or (excluded.p8 is not null and t.[key_version] is null))
   or (excluded.p9 <> t.[no_show_version] or (excluded.p9 is null and t.[no_show_version] is not null) or (excluded.p9 is not null and t.[no_show_version] is null))
   or (excluded.p10 <> t.[occupant_since] or (excluded.p10 is null and t.[occupant_since] is not null) or (excluded.p10 is not null and t.[occupant_since] is null)));
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
--   p1 ref: key, text
delete t
from [booking_occupants] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v on t.[ref] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[ref] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

