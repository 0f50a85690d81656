==== postgres

-- Function that joins a row into table booking for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_booking(ref => …, occupant_id => …, occupant_since => …, …);
--   ref: key, text
--   occupant_id: the occupant
--   occupant_since: since when the occupant holds the row, NULL if unknown
--   channel: text, latest, set if key_version is not NULL
--   status: text, latest, set if row_version is not NULL
--   invitee: text, latest, set if row_version is not NULL
--   no_show: bool, latest, set if no_show_version is not NULL
--   key_version: version of scope key, NULL if it is not set
--   row_version: version of scope row, NULL if it is not set
--   no_show_version: version of scope no_show, NULL if it is not set
-- A version has one form for all that write the table: its elements, each with / behind it (a time in UTC with nine digits
-- of a second, a whole number n as n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that
-- tell apart two events of one version. Of a time at and the event's text body it is:
--   to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '000Z/0/' || left(encode(sha256(convert_to(body, 'UTF8')), 'hex'), 16)
-- To remove it: drop function if exists hookfold_booking;

begin;
drop function if exists hookfold_booking;
create function hookfold_booking(
    ref text,
    occupant_id text default null,
    occupant_since text default null,
    channel text default null,
    status text default null,
    invitee text default null,
    no_show boolean default null,
    key_version text default null,
    row_version text default null,
    no_show_version text default null
) returns boolean
language plpgsql
set search_path from current
as $hookfold$
#variable_conflict use_column
declare
    hookfold_count bigint;
    hookfold_written bigint := 0;
begin
    if $8 is null and ($4 is not null) then
        raise exception using errcode = '22023', message = 'key_version is NULL, so it cannot be told whether the row is newer';
    end if;
    if $8 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($8, ' has not the form of a version');
    end if;
    if $9 is null and ($5 is not null or $6 is not null) then
        raise exception using errcode = '22023', message = 'row_version is NULL, so it cannot be told whether the row is newer';
    end if;
    if $9 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($9, ' has not the form of a version');
    end if;
    if $10 is null and ($7 is not null) then
        raise exception using errcode = '22023', message = 'no_show_version is NULL, so it cannot be told whether the row is newer';
    end if;
    if $10 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($10, ' has not the form of a version');
    end if;
    if $2 is not null then
        insert into booking_occupants as t (ref, occupant_id, status, invitee, no_show, row_version, no_show_version, occupant_since)
        select v.p1,
            v.p2,
            v.p3,
            v.p4,
            v.p5::boolean,
            v.p6,
            v.p7,
            v.p8
        from (values ($1, $2, $5, $6, $7, $9, $10, $3)) as v (p1, p2, p3, p4, p5, p6, p7, p8)
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
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
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
            from (select *, 1 from (values ($1, $2, $4, $8)) as v) as v (p1, p2, p3, p4, hookfold_n)
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
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    if $2 is null or $4 is not null or $8 is not null then
        insert into booking as t (ref, channel, key_version)
        select v.p1,
            v.p2,
            v.p3
        from (values ($1, $4, $8)) as v (p1, p2, p3)
        on conflict (ref) do update set
            channel = case when excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.channel else t.channel end,
            key_version = case when excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.key_version else t.key_version end
        where (excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" and (excluded.channel is distinct from t.channel or excluded.key_version is distinct from t.key_version));
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    return hookfold_written > 0;
end
$hookfold$;
commit;

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== mysql

-- MySQL has no procedures whose arguments go by name and may be left out. Run the statement that hookfold sql prints, or install the guard trigger

==== sqlserver

-- table booking: occupants, unions, and max and min of text are joined outside of the database, under locks, since T-SQL cannot decide them exactly

