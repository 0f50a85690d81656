==== postgres

-- Table every_rule for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table every_rule (
    tenant text collate "C" not null,
    "no" bigint not null,
    status text,
    amount numeric(10,2),
    note character varying(20),
    origin text,
    top numeric,
    name text,
    since timestamp with time zone,
    step text,
    tags text[],
    changed_at timestamp with time zone,
    primary key (tenant, "no")
);
create table if not exists hookfold_versions (
    table_name text collate "C" not null,
    "key" text collate "C" not null,
    versions jsonb,
    primary key (table_name, "key")
);

-- First lock the versions of all keys (a key is a JSON list of its parts), in order, and read them:
insert into hookfold_versions (table_name, key) select $1, k from unnest($2::text[]) as k on conflict (table_name, key) do nothing;
select key, versions::text from hookfold_versions where table_name = $1 and key = any($2::text[]) order by key collate "C" for update;

-- Last, store the versions (a JSON object by the name of the version):
update hookfold_versions as t set versions = v.versions::jsonb from unnest($2::text[], $3::text[]) as v (key, versions) where t.table_name = $1 and t.key = v.key;

-- Which rows are there, locked:
--   $1 tenant: key, text
--   $2 no: key, int
select v.hookfold_n, array[t.origin is null]::bool[]
from unnest($1::text[], $2::text[]) with ordinality as v (p1, p2, hookfold_n)
join every_rule as t on t.tenant = v.p1 and t."no" = v.p2::bigint
order by v.hookfold_n
for no key update of t;

-- Insert those that are not:
--   $1 tenant: key, text
--   $2 no: key, int
--   $3 status: text, latest, set if row_version is not NULL
--   $4 amount: numeric(10,2), latest, set if row_version is not NULL
--   $5 note: text(20), latest, set if note_version is not NULL
--   $6 origin: text, first
--   $7 top: numeric, max
--   $8 name: text, max
--   $9 since: timestamp, min
--   $10 step: text, ladder
--   $11 tags: text[], union
--   $12 row_version: version of scope row, NULL if it is not set
--   $13 note_version: version of scope note, NULL if it is not set
--   $14 origin__first: version of origin, NULL if it is not set
insert into every_rule as t (tenant, "no", status, amount, note, origin, top, name, since, step, tags, changed_at)
select v.p1,
    v.p2::bigint,
    v.p3,
    v.p4::numeric(10,2),
    v.p5::character varying,
    v.p6,
    v.p7::numeric,
    v.p8,
    v.p9::timestamp with time zone,
    v.p10,
    v.p11::text[],
    clock_timestamp()
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14)
on conflict (tenant, "no") do nothing;

-- Join those that are:
--   $1 tenant: key, text
--   $2 no: key, int
--   $3 status: text, latest, set if row_version is not NULL
--   $4 amount: numeric(10,2), latest, set if row_version is not NULL
--   $5 note: text(20), latest, set if note_version is not NULL
--   $6 origin: text, first
--   $7 top: numeric, max
--   $8 name: text, max
--   $9 since: timestamp, min
--   $10 step: text, ladder
--   $11 tags: text[], union
--   $12 row_version: version of scope row, NULL if it is not set
--   $13 note_version: version of scope note, NULL if it is not set
--   $14 origin__first: version of origin, NULL if it is not set
--   $15 stored_row_version: the version that is stored, NULL if none
--   $16 stored_note_version: the version that is stored, NULL if none
--   $17 stored_origin__first: the version that is stored, NULL if none
update every_rule as t
set status = case when excluded.p12 collate "C" >= coalesce(excluded.p15, '') collate "C" then excluded.p3 else t.status end,
    amount = case when excluded.p12 collate "C" >= coalesce(excluded.p15, '') collate "C" then excluded.p4 else t.amount end,
    note = case when excluded.p13 collate "C" >= coalesce(excluded.p16, '') collate "C" then excluded.p5 else t.note end,
    origin = case when excluded.p14 is not null and (excluded.p17 is null and t.origin is null or excluded.p14 collate "C" <= excluded.p17 collate "C") then excluded.p6 else t.origin end,
    top = case when excluded.p7 is not null and (t.top is null or excluded.p7 > t.top) then excluded.p7 else t.top end,
    name = case when excluded.p8 is not null and (t.name is null or excluded.p8 collate "C" > t.name collate "C") then excluded.p8 else t.name end,
    since = case when excluded.p9 is not null and (t.since is null or t.since > excluded.p9) then excluded.p9 else t.since end,
    step = case when excluded.p10 is not null and (t.step is null or case excluded.p10 collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end) then excluded.p10 else t.step end,
    tags = case when excluded.p11 is not null then case when t.tags is null then excluded.p11 else array(select distinct x collate "C" from unnest(t.tags || excluded.p11) as x where x is not null order by 1) end else t.tags end,
    changed_at = case when (excluded.p12 collate "C" >= coalesce(excluded.p15, '') collate "C" and (excluded.p3 is distinct from t.status or excluded.p4 is distinct from t.amount))
           or (excluded.p13 collate "C" >= coalesce(excluded.p16, '') collate "C" and (excluded.p5 is distinct from t.note))
           or (excluded.p14 is not null and (excluded.p17 is null and t.origin is null or excluded.p14 collate "C" <= excluded.p17 collate "C") and (excluded.p6 is distinct from t.origin))
           or (excluded.p7 is not null and (t.top is null or excluded.p7 > t.top))
           or (excluded.p8 is not null and (t.name is null or excluded.p8 collate "C" > t.name collate "C"))
           or (excluded.p9 is not null and (t.since is null or t.since > excluded.p9))
           or (excluded.p10 is not null and (t.step is null or case excluded.p10 collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end))
           or (excluded.p11 is not null and ((t.tags is null or array(select distinct x collate "C" from unnest(t.tags || excluded.p11) as x where x is not null order by 1) is distinct from t.tags)))
      then clock_timestamp() else t.changed_at end
from (select v.p1 as p1,
    v.p2::bigint as p2,
    v.p3 as p3,
    v.p4::numeric(10,2) as p4,
    v.p5::character varying as p5,
    v.p6 as p6,
    v.p7::numeric as p7,
    v.p8 as p8,
    v.p9::timestamp with time zone as p9,
    v.p10 as p10,
    v.p11::text[] as p11,
    v.p12 as p12,
    v.p13 as p13,
    v.p14 as p14,
    v.p15 as p15,
    v.p16 as p16,
    v.p17 as p17
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17)) as excluded
where t.tenant = excluded.p1 and t."no" = excluded.p2
  and ((excluded.p12 collate "C" >= coalesce(excluded.p15, '') collate "C" and (excluded.p3 is distinct from t.status or excluded.p4 is distinct from t.amount))
   or (excluded.p13 collate "C" >= coalesce(excluded.p16, '') collate "C" and (excluded.p5 is distinct from t.note))
   or (excluded.p14 is not null and (excluded.p17 is null and t.origin is null or excluded.p14 collate "C" <= excluded.p17 collate "C") and (excluded.p6 is distinct from t.origin))
   or (excluded.p7 is not null and (t.top is null or excluded.p7 > t.top))
   or (excluded.p8 is not null and (t.name is null or excluded.p8 collate "C" > t.name collate "C"))
   or (excluded.p9 is not null and (t.since is null or t.since > excluded.p9))
   or (excluded.p10 is not null and (t.step is null or case excluded.p10 collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end))
   or (excluded.p11 is not null and ((t.tags is null or array(select distinct x collate "C" from unnest(t.tags || excluded.p11) as x where x is not null order by 1) is distinct from t.tags))));

==== sqlite

-- Table every_rule for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- hookfold_decimal(a, b) compares decimals: it is below, at or above 0 as a is less than, equal to or
-- greater than b. Hookfold registers it; your own code has to register one too.
-- Each statement is for one row.

-- What has to be there:
create table every_rule (
    tenant text not null,
    "no" integer not null,
    status text,
    amount text,
    note text,
    origin text,
    top text,
    name text,
    since text,
    step text,
    tags text,
    changed_at text,
    primary key (tenant, "no")
);
create table if not exists hookfold_versions (
    table_name text not null,
    "key" text not null,
    versions text,
    primary key (table_name, "key")
);

-- First lock the versions of all keys (a key is a JSON list of its parts), in order, and read them:
insert into hookfold_versions (table_name, key) values (?1, ?2) on conflict (table_name, key) do nothing;
select key, versions from hookfold_versions where table_name = ?1 and key = ?2;

-- Last, store the versions (a JSON object by the name of the version):
update hookfold_versions set versions = ?3 where table_name = ?1 and key = ?2;

-- Which rows are there, locked:
--   ?1 tenant: key, text
--   ?2 no: key, int
select t.origin is null from every_rule as t where t.tenant = ?1 and t."no" = ?2;

-- Insert those that are not:
--   ?1 tenant: key, text
--   ?2 no: key, int
--   ?3 status: text, latest, set if row_version is not NULL
--   ?4 amount: numeric(10,2), latest, set if row_version is not NULL
--   ?5 note: text(20), latest, set if note_version is not NULL
--   ?6 origin: text, first
--   ?7 top: numeric, max
--   ?8 name: text, max
--   ?9 since: timestamp, min
--   ?10 step: text, ladder
--   ?11 tags: text[], union
--   ?12 row_version: version of scope row, NULL if it is not set
--   ?13 note_version: version of scope note, NULL if it is not set
--   ?14 origin__first: version of origin, NULL if it is not set
insert into every_rule as t (tenant, "no", status, amount, note, origin, top, name, since, step, tags, changed_at)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5,
    ?6,
    ?7,
    ?8,
    ?9,
    ?10,
    ?11,
    strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
on conflict (tenant, "no") do nothing;

-- Join those that are:
--   ?1 tenant: key, text
--   ?2 no: key, int
--   ?3 status: text, latest, set if row_version is not NULL
--   ?4 amount: numeric(10,2), latest, set if row_version is not NULL
--   ?5 note: text(20), latest, set if note_version is not NULL
--   ?6 origin: text, first
--   ?7 top: numeric, max
--   ?8 name: text, max
--   ?9 since: timestamp, min
--   ?10 step: text, ladder
--   ?11 tags: text[], union
--   ?12 row_version: version of scope row, NULL if it is not set
--   ?13 note_version: version of scope note, NULL if it is not set
--   ?14 origin__first: version of origin, NULL if it is not set
--   ?15 stored_row_version: the version that is stored, NULL if none
--   ?16 stored_note_version: the version that is stored, NULL if none
--   ?17 stored_origin__first: the version that is stored, NULL if none
update every_rule as t
set status = case when excluded.p12 collate binary >= coalesce(excluded.p15, '') collate binary then excluded.p3 else t.status end,
    amount = case when excluded.p12 collate binary >= coalesce(excluded.p15, '') collate binary then excluded.p4 else t.amount end,
    note = case when excluded.p13 collate binary >= coalesce(excluded.p16, '') collate binary then excluded.p5 else t.note end,
    origin = case when excluded.p14 is not null and (excluded.p17 is null and t.origin is null or excluded.p14 collate binary <= excluded.p17 collate binary) then excluded.p6 else t.origin end,
    top = case when excluded.p7 is not null and (t.top is null or hookfold_decimal(excluded.p7, t.top) > 0) then excluded.p7 else t.top end,
    name = case when excluded.p8 is not null and (t.name is null or excluded.p8 collate binary > t.name) then excluded.p8 else t.name end,
    since = case when excluded.p9 is not null and (t.since is null or t.since collate binary > excluded.p9) then excluded.p9 else t.since end,
    step = case when excluded.p10 is not null and (t.step is null or case excluded.p10 collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end) then excluded.p10 else t.step end,
    tags = case when excluded.p11 is not null then case when t.tags is null then excluded.p11 else (select json_group_array(value) from (select value from json_each(t.tags) where value is not null union select value from json_each(excluded.p11) order by 1 collate binary)) end else t.tags end,
    changed_at = case when (excluded.p12 collate binary >= coalesce(excluded.p15, '') collate binary and (excluded.p3 collate binary is not t.status or excluded.p4 collate binary is not t.amount))
           or (excluded.p13 collate binary >= coalesce(excluded.p16, '') collate binary and (excluded.p5 collate binary is not t.note))
           or (excluded.p14 is not null and (excluded.p17 is null and t.origin is null or excluded.p14 collate binary <= excluded.p17 collate binary) and (excluded.p6 collate binary is not t.origin))
           or (excluded.p7 is not null and (t.top is null or hookfold_decimal(excluded.p7, t.top) > 0))
           or (excluded.p8 is not null and (t.name is null or excluded.p8 collate binary > t.name))
           or (excluded.p9 is not null and (t.since is null or t.since collate binary > excluded.p9))
           or (excluded.p10 is not null and (t.step is null or case excluded.p10 collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end))
           or (excluded.p11 is not null and ((t.tags is null or (select json_group_array(value) from (select value from json_each(t.tags) where value is not null union select value from json_each(excluded.p11) order by 1 collate binary)) collate binary is not t.tags)))
      then strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z' else t.changed_at end
from (select ?1 as p1, ?2 as p2, ?3 as p3, ?4 as p4, ?5 as p5, ?6 as p6, ?7 as p7, ?8 as p8, ?9 as p9, ?10 as p10, ?11 as p11, ?12 as p12, ?13 as p13, ?14 as p14, ?15 as p15, ?16 as p16, ?17 as p17) as excluded
where t.tenant = excluded.p1 and t."no" = excluded.p2
  and ((excluded.p12 collate binary >= coalesce(excluded.p15, '') collate binary and (excluded.p3 collate binary is not t.status or excluded.p4 collate binary is not t.amount))
   or (excluded.p13 collate binary >= coalesce(excluded.p16, '') collate binary and (excluded.p5 collate binary is not t.note))
   or (excluded.p14 is not null and (excluded.p17 is null and t.origin is null or excluded.p14 collate binary <= excluded.p17 collate binary) and (excluded.p6 collate binary is not t.origin))
   or (excluded.p7 is not null and (t.top is null or hookfold_decimal(excluded.p7, t.top) > 0))
   or (excluded.p8 is not null and (t.name is null or excluded.p8 collate binary > t.name))
   or (excluded.p9 is not null and (t.since is null or t.since collate binary > excluded.p9))
   or (excluded.p10 is not null and (t.step is null or case excluded.p10 collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end))
   or (excluded.p11 is not null and ((t.tags is null or (select json_group_array(value) from (select value from json_each(t.tags) where value is not null union select value from json_each(excluded.p11) order by 1 collate binary)) collate binary is not t.tags))));

==== mysql

-- Table every_rule for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `every_rule` (
    `tenant` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `no` bigint not null,
    `status` longtext character set utf8mb4,
    `amount` decimal(10,2),
    `note` varchar(20) character set utf8mb4,
    `origin` longtext character set utf8mb4,
    `top` decimal(65,30),
    `name` longtext character set utf8mb4,
    `since` datetime(6),
    `step` longtext character set utf8mb4,
    `tags` json,
    `changed_at` datetime(6),
    primary key (`tenant`, `no`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_versions` (
    `table_name` varbinary(256) not null,
    `key` varbinary(1200) not null,
    `versions` longtext character set utf8mb4,
    primary key (`table_name`, `key`)
) engine = InnoDB default character set utf8mb4;

-- First lock the versions of all keys (a key is a JSON list of its parts), in order, and read them:
insert into `hookfold_versions` (`table_name`, `key`)
select v.p1, v.p2 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
on duplicate key update `key` = `hookfold_versions`.`key`;
select v.p2, t.`versions` from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_versions` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary)
for update;

-- Last, store the versions (a JSON object by the name of the version):
update (select v.p1, v.p2, v.p3 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]')) as v) as v
straight_join `hookfold_versions` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary)
set t.`versions` = v.p3;

-- Which rows are there, locked:
--   v.p1 tenant: key, text
--   v.p2 no: key, int
select v.hookfold_n, t.`origin` is null
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `every_rule` as t force index (`PRIMARY`) on t.`tenant` = v.p1 and t.`no` = cast(v.p2 as signed)
for update;

-- Insert those that are not:
--   v.p1 tenant: key, text
--   v.p2 no: key, int
--   v.p3 status: text, latest, set if row_version is not NULL
--   v.p4 amount: numeric(10,2), latest, set if row_version is not NULL
--   v.p5 note: text(20), latest, set if note_version is not NULL
--   v.p6 origin: text, first
--   v.p7 top: numeric, max
--   v.p8 name: text, max
--   v.p9 since: timestamp, min
--   v.p10 step: text, ladder
--   v.p11 tags: text[], union
--   v.p12 row_version: version of scope row, NULL if it is not set
--   v.p13 note_version: version of scope note, NULL if it is not set
--   v.p14 origin__first: version of origin, NULL if it is not set
insert into `every_rule` (`tenant`, `no`, `status`, `amount`, `note`, `origin`, `top`, `name`, `since`, `step`, `tags`, `changed_at`)
select v.p1,
    cast(v.p2 as signed),
    v.p3,
    cast(v.p4 as decimal(10,2)),
    v.p5,
    v.p6,
    cast(v.p7 as decimal(65,30)),
    v.p8,
    cast(v.p9 as datetime(6)),
    v.p10,
    v.p11,
    utc_timestamp(6)
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]', p9 longtext character set utf8mb4 collate utf8mb4_bin path '$[8]', p10 longtext character set utf8mb4 collate utf8mb4_bin path '$[9]', p11 longtext character set utf8mb4 collate utf8mb4_bin path '$[10]', p12 longtext character set utf8mb4 collate utf8mb4_bin path '$[11]', p13 longtext character set utf8mb4 collate utf8mb4_bin path '$[12]', p14 longtext character set utf8mb4 collate utf8mb4_bin path '$[13]')) as v
where not exists (select 1 from `every_rule` as t force index (`PRIMARY`) where t.`tenant` = v.p1 and t.`no` = cast(v.p2 as signed));

-- Join those that are:
--   v.p1 tenant: key, text
--   v.p2 no: key, int
--   v.p3 status: text, latest, set if row_version is not NULL
--   v.p4 amount: numeric(10,2), latest, set if row_version is not NULL
--   v.p5 note: text(20), latest, set if note_version is not NULL
--   v.p6 origin: text, first
--   v.p7 top: numeric, max
--   v.p8 name: text, max
--   v.p9 since: timestamp, min
--   v.p10 step: text, ladder
--   v.p11 tags: text[], union
--   v.p12 row_version: version of scope row, NULL if it is not set
--   v.p13 note_version: version of scope note, NULL if it is not set
--   v.p14 origin__first: version of origin, NULL if it is not set
--   v.p15 stored_row_version: the version that is stored, NULL if none
--   v.p16 stored_note_version: the version that is stored, NULL if none
--   v.p17 stored_origin__first: the version that is stored, NULL if none
update (select v.p1 as p1,
    cast(v.p2 as signed) as p2,
    v.p3 as p3,
    cast(v.p4 as decimal(10,2)) as p4,
    v.p5 as p5,
    v.p6 as p6,
    cast(v.p7 as decimal(65,30)) as p7,
    v.p8 as p8,
    cast(v.p9 as datetime(6)) as p9,
    v.p10 as p10,
    v.p11 as p11,
    v.p12 as p12,
    v.p13 as p13,
    v.p14 as p14,
    v.p15 as p15,
    v.p16 as p16,
    v.p17 as p17
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]', p9 longtext character set utf8mb4 collate utf8mb4_bin path '$[8]', p10 longtext character set utf8mb4 collate utf8mb4_bin path '$[9]', p11 longtext character set utf8mb4 collate utf8mb4_bin path '$[10]', p12 longtext character set utf8mb4 collate utf8mb4_bin path '$[11]', p13 longtext character set utf8mb4 collate utf8mb4_bin path '$[12]', p14 longtext character set utf8mb4 collate utf8mb4_bin path '$[13]', p15 longtext character set utf8mb4 collate utf8mb4_bin path '$[14]', p16 longtext character set utf8mb4 collate utf8mb4_bin path '$[15]', p17 longtext character set utf8mb4 collate utf8mb4_bin path '$[16]')) as v) as excluded
straight_join `every_rule` as t force index (`PRIMARY`) on t.`tenant` = excluded.p1 and t.`no` = excluded.p2
set t.`changed_at` = case when (cast(excluded.p12 as binary) >= cast(coalesce(excluded.p15, '') as binary) and (not (cast(excluded.p3 as binary) <=> cast(t.`status` as binary)) or not (excluded.p4 <=> t.`amount`)))
           or (cast(excluded.p13 as binary) >= cast(coalesce(excluded.p16, '') as binary) and (not (cast(excluded.p5 as binary) <=> cast(t.`note` as binary))))
           or (excluded.p14 is not null and (excluded.p17 is null and t.`origin` is null or cast(excluded.p14 as binary) <= cast(excluded.p17 as binary)) and (not (cast(excluded.p6 as binary) <=> cast(t.`origin` as binary))))
           or (excluded.p7 is not null and (t.`top` is null or excluded.p7 > t.`top`))
           or (excluded.p8 is not null and (t.`name` is null or cast(excluded.p8 as binary) > cast(t.`name` as binary)))
           or (excluded.p9 is not null and (t.`since` is null or t.`since` > excluded.p9))
           or (excluded.p10 is not null and (t.`step` is null or case cast(excluded.p10 as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case cast(t.`step` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end))
           or (excluded.p11 is not null and ((t.`tags` is null or not (json_extract((select concat('[', coalesce(group_concat(distinct json_quote(j.x) order by cast(j.x as binary) separator ','), ''), ']') from json_table(json_merge_preserve(t.`tags`, excluded.p11), '$[*]' columns (x longtext character set utf8mb4 collate utf8mb4_bin path '$')) as j), '$') <=> json_extract(t.`tags`, '$')))))
      then utc_timestamp(6) else t.`changed_at` end,
    t.`status` = case when cast(excluded.p12 as binary) >= cast(coalesce(excluded.p15, '') as binary) then excluded.p3 else t.`status` end,
    t.`amount` = case when cast(excluded.p12 as binary) >= cast(coalesce(excluded.p15, '') as binary) then excluded.p4 else t.`amount` end,
    t.`note` = case when cast(excluded.p13 as binary) >= cast(coalesce(excluded.p16, '') as binary) then excluded.p5 else t.`note` end,
    t.`origin` = case when excluded.p14 is not null and (excluded.p17 is null and t.`origin` is null or cast(excluded.p14 as binary) <= cast(excluded.p17 as binary)) then excluded.p6 else t.`origin` end,
    t.`top` = case when excluded.p7 is not null and (t.`top` is null or excluded.p7 > t.`top`) then excluded.p7 else t.`top` end,
    t.`name` = case when excluded.p8 is not null and (t.`name` is null or cast(excluded.p8 as binary) > cast(t.`name` as binary)) then excluded.p8 else t.`name` end,
    t.`since` = case when excluded.p9 is not null and (t.`since` is null or t.`since` > excluded.p9) then excluded.p9 else t.`since` end,
    t.`step` = case when excluded.p10 is not null and (t.`step` is null or case cast(excluded.p10 as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case cast(t.`step` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end) then excluded.p10 else t.`step` end,
    t.`tags` = case when excluded.p11 is not null then case when t.`tags` is null then excluded.p11 else (select concat('[', coalesce(group_concat(distinct json_quote(j.x) order by cast(j.x as binary) separator ','), ''), ']') from json_table(json_merge_preserve(t.`tags`, excluded.p11), '$[*]' columns (x longtext character set utf8mb4 collate utf8mb4_bin path '$')) as j) end else t.`tags` end;

==== sqlserver

-- Table every_rule for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [every_rule] (
    [tenant] nvarchar(450) collate Latin1_General_BIN2 not null,
    [no] bigint not null,
    [status] nvarchar(max),
    [amount] decimal(10,2),
    [note] nvarchar(20),
    [origin] nvarchar(max),
    [top] decimal(38,18),
    [name] nvarchar(max),
    [since] datetimeoffset(6),
    [step] nvarchar(max),
    [tags] nvarchar(max),
    [changed_at] datetimeoffset(6),
    primary key ([tenant], [no])
);
if object_id(N'[hookfold_versions]', N'U') is null
create table [hookfold_versions] (
    [table_name] nvarchar(256) collate Latin1_General_BIN2 not null,
    [key] nvarchar(450) collate Latin1_General_BIN2 not null,
    [versions] nvarchar(max),
    primary key nonclustered ([table_name], [key])
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the keys' numbers, ascending, each by:
exec @got = sp_getapplock @Resource = N'hookfold 0', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 1000;

-- Read and lock rows:
--   p1 tenant: key, text
--   p2 no: key, int
select v.n, t.[tenant], t.[no], t.[status], convert(varchar(50), t.[amount]), t.[note], t.[origin], convert(varchar(50), t.[top]), t.[name], t.[since], t.[step], t.[tags], t.[changed_at]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2') as v
join [every_rule] as t with (updlock, rowlock) on t.[tenant] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[tenant] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[no] = cast(v.p2 as bigint)
order by v.n;

-- Remove rows:
-- The same parameters.
delete t
from [every_rule] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2') as v on t.[tenant] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[tenant] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[no] = cast(v.p2 as bigint);

-- Change rows:
--   p1 tenant: key, text
--   p2 no: key, int
--   p3 status: text, latest, set if row_version is not NULL
--   p4 amount: numeric(10,2), latest, set if row_version is not NULL
--   p5 note: text(20), latest, set if note_version is not NULL
--   p6 origin: text, first
--   p7 top: numeric, max
--   p8 name: text, max
--   p9 since: timestamp, min
--   p10 step: text, ladder
--   p11 tags: text[], union
--   p12 row_version: version of scope row, NULL if it is not set
--   p13 note_version: version of scope note, NULL if it is not set
--   p14 origin__first: version of origin, NULL if it is not set
update t
set [status] = excluded.p3,
    [amount] = excluded.p4,
    [note] = excluded.p5,
    [origin] = excluded.p6,
    [top] = excluded.p7,
    [name] = excluded.p8,
    [since] = excluded.p9,
    [step] = excluded.p10,
    [tags] = excluded.p11,
    [changed_at] = case when ((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[status] is not null) or (excluded.p3 is not null and t.[status] is null))
      or (excluded.p4 <> t.[amount] or (excluded.p4 is null and t.[amount] is not null) or (excluded.p4 is not null and t.[amount] is null))
      or ((cast(excluded.p5 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[note] as nvarchar(max)) + N'.' or (excluded.p5 is null and t.[note] is not null) or (excluded.p5 is not null and t.[note] is null))
      or ((cast(excluded.p6 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[origin] as nvarchar(max)) + N'.' or (excluded.p6 is null and t.[origin] is not null) or (excluded.p6 is not null and t.[origin] is null))
      or (excluded.p7 <> t.[top] or (excluded.p7 is null and t.[top] is not null) or (excluded.p7 is not null and t.[top] is null))
      or ((cast(excluded.p8 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[name] as nvarchar(max)) + N'.' or (excluded.p8 is null and t.[name] is not null) or (excluded.p8 is not null and t.[name] is null))
      or (excluded.p9 <> t.[since] or (excluded.p9 is null and t.[since] is not null) or (excluded.p9 is not null and t.[since] is null))
      or ((cast(excluded.p10 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[step] as nvarchar(max)) + N'.' or (excluded.p10 is null and t.[step] is not null) or (excluded.p10 is not null and t.[step] is null))
      or ((cast(excluded.p11 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[tags] as nvarchar(max)) + N'.' or (excluded.p11 is null and t.[tags] is not null) or (excluded.p11 is not null and t.[tags] is null)) then sysutcdatetime() else t.[changed_at] end
from [every_rule] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, cast(v.p2 as bigint) as p2, v.p3 as p3, cast(v.p4 as decimal(10,2)) as p4, v.p5 as p5, v.p6 as p6, cast(v.p7 as decimal(38,18)) as p7, v.p8 as p8, cast(replace(v.p9, N'Z', N'+00:00') as datetimeoffset(6)) as p9, v.p10 as p10, v.p11 as p11, v.p12 as p12, v.p13 as p13, v.p14 as p14
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9', p10 nvarchar(max) '$.p10', p11 nvarchar(max) '$.p11', p12 nvarchar(max) '$.p12', p13 nvarchar(max) '$.p13', p14 nvarchar(max) '$.p14') as v) as excluded on t.[tenant] = excluded.p1 and (t.[tenant] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2 and t.[no] = excluded.p2
where (((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[status] is not null) or (excluded.p3 is not null and t.[status] is null))
   or (excluded.p4 <> t.[amount] or (excluded.p4 is null and t.[amount] is not null) or (excluded.p4 is not null and t.[amount] is null))
   or ((cast(excluded.p5 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[note] as nvarchar(max)) + N'.' or (excluded.p5 is null and t.[note] is not null) or (excluded.p5 is not null and t.[note] is null))
   or ((cast(excluded.p6 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[origin] as nvarchar(max)) + N'.' or (excluded.p6 is null and t.[origin] is not null) or (excluded.p6 is not null and t.[origin] is null))
   or (excluded.p7 <> t.[top] or (excluded.p7 is null and t.[top] is not null) or (excluded.p7 is not null and t.[top] is null))
   or ((cast(excluded.p8 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[name] as nvarchar(max)) + N'.' or (excluded.p8 is null and t.[name] is not null) or (excluded.p8 is not null and t.[name] is null))
   or (excluded.p9 <> t.[since] or (excluded.p9 is null and t.[since] is not null) or (excluded.p9 is not null and t.[since] is null))
   or ((cast(excluded.p10 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[step] as nvarchar(max)) + N'.' or (excluded.p10 is null and t.[step] is not null) or (excluded.p10 is not null and t.[step] is null))
   or ((cast(excluded.p11 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[tags] as nvarchar(max)) + N'.' or (excluded.p11 is null and t.[tags] is not null) or (excluded.p11 is not null and t.[tags] is null)));

-- Insert rows:
-- The same parameters.
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [every_rule] ([tenant], [no], [status], [amount], [note], [origin], [top], [name], [since], [step], [tags], [changed_at])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    cast(v.p2 as bigint),
    v.p3,
    cast(v.p4 as decimal(10,2)),
    v.p5,
    v.p6,
    cast(v.p7 as decimal(38,18)),
    v.p8,
    cast(replace(v.p9, N'Z', N'+00:00') as datetimeoffset(6)),
    v.p10,
    v.p11,
    sysutcdatetime()
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8', p9 nvarchar(max) '$.p9', p10 nvarchar(max) '$.p10', p11 nvarchar(max) '$.p11', p12 nvarchar(max) '$.p12', p13 nvarchar(max) '$.p13', p14 nvarchar(max) '$.p14') as v
where not exists (select 1 from [every_rule] as t where t.[tenant] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[tenant] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[no] = cast(v.p2 as bigint));
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

