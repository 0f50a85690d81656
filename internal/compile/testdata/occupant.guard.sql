==== postgres

-- Guard trigger of table booking for postgres.
-- It may be run again, and has to be after the config or the table has changed (hookfold check --connect tells).
-- A writer sends plain rows with their versions, in any order, as often as it likes:
--   insert into ... values ... on conflict (key) do update set <every column> = excluded.<column>
-- A column without a version of its own says nothing if it is NULL, a scope if its version is NULL.
--   set local hookfold.set = 'a, b'     only these columns are meant; the others say nothing, whatever they hold
--   set local hookfold.guard = 'on'     join every UPDATE too; without it one that moves no version passes as it is
--   set local hookfold.guard = 'off'    let everything pass as it is
-- A row that would not change is not written, and not counted among those affected.

-- To remove it:
--   begin;
--   drop trigger if exists zz_hookfold_guard on booking;
--   drop trigger if exists zz_hookfold_guard_done on booking;
--   drop function if exists hookfold_guard_booking();
--   comment on column booking.key_version is null;
--   drop trigger if exists zz_hookfold_guard on booking_occupants;
--   drop trigger if exists zz_hookfold_guard_done on booking_occupants;
--   drop function if exists hookfold_guard_booking_occupants();
--   comment on column booking_occupants.row_version is null;
--   drop trigger if exists zz_hookfold_guard_shows on booking_occupants;
--   drop function if exists hookfold_guard_booking_occupants_shows();
--   commit;

begin;
create or replace function hookfold_guard_booking() returns trigger
language plpgsql
set search_path from current
as $hookfold$
declare
    excluded alias for new;
    t alias for old;
    hookfold_set text[];
begin
    if tg_level = 'STATEMENT' then
        perform set_config('hookfold.upsert', '', true);
        return null;
    end if;
    if current_setting('hookfold.guard', true) = 'off' then
        return new;
    end if;
    hookfold_set := case when current_setting('hookfold.set', true) like '{%' then current_setting('hookfold.set', true)::text[]
        else string_to_array(nullif(replace(current_setting('hookfold.set', true), ' ', ''), ''), ',') end;
    if tg_op = 'INSERT' then
        perform set_config('hookfold.upsert', tg_relid || ' ' || row(excluded."ref")::text, true);
        if hookfold_set is not null then
            if not hookfold_set && array['channel', 'key_version']::text[] then
                excluded."channel" := null;
                excluded."key_version" := null;
            end if;
        end if;
        return new;
    end if;
    if current_setting('hookfold.upsert', true) = tg_relid || ' ' || row(t."ref")::text then
        perform set_config('hookfold.upsert', '', true);
    elsif hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'
        and not (excluded."key_version" is distinct from t."key_version"
            or excluded."row_version" is distinct from t."row_version"
            or excluded."no_show_version" is distinct from t."no_show_version"
            or excluded."occupant_since" is distinct from t."occupant_since"
            or excluded."occupant_id" is distinct from t."occupant_id") then
        return new; -- a person's UPDATE
    end if;
    if hookfold_set is not null then
        if not hookfold_set && array['channel', 'key_version']::text[] then
            excluded."channel" := t."channel";
            excluded."key_version" := t."key_version";
        end if;
    end if;
    if (excluded."key_version" collate "C" >= coalesce(t."key_version", '') collate "C") is not true then
        excluded."channel" := t."channel";
        excluded."key_version" := t."key_version";
    end if;
    if (excluded."occupant_id" is not null and (coalesce(excluded."occupant_since", '') collate "C", coalesce(excluded."occupant_id", '') collate "C", coalesce(excluded."row_version", '') collate "C")
        >= (coalesce(t."occupant_since", '') collate "C", coalesce(t."occupant_id", '') collate "C", coalesce(t."row_version", '') collate "C")) is not true then
        excluded."status" := t."status";
        excluded."invitee" := t."invitee";
        excluded."no_show" := t."no_show";
        excluded."row_version" := t."row_version";
        excluded."no_show_version" := t."no_show_version";
        excluded."occupant_since" := t."occupant_since";
        excluded."occupant_id" := t."occupant_id";
        excluded."changed_at" := t."changed_at";
    end if;
    if new operator(pg_catalog.*=) old then
        return null;
    end if;
    return new;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard on booking;
create trigger zz_hookfold_guard before insert or update on booking for each row execute function hookfold_guard_booking();
drop trigger if exists zz_hookfold_guard_done on booking;
create trigger zz_hookfold_guard_done after insert on booking for each statement execute function hookfold_guard_booking();
comment on column booking.key_version is 'Joined by Hookfold''s guard trigger bfc7cee232cc';
create or replace function hookfold_guard_booking_occupants() returns trigger
language plpgsql
set search_path from current
as $hookfold$
declare
    excluded alias for new;
    t alias for old;
    hookfold_set text[];
begin
    if tg_level = 'STATEMENT' then
        perform set_config('hookfold.upsert', '', true);
        return null;
    end if;
    if current_setting('hookfold.guard', true) = 'off' then
        return new;
    end if;
    hookfold_set := case when current_setting('hookfold.set', true) like '{%' then current_setting('hookfold.set', true)::text[]
        else string_to_array(nullif(replace(current_setting('hookfold.set', true), ' ', ''), ''), ',') end;
    if tg_op = 'INSERT' then
        perform set_config('hookfold.upsert', tg_relid || ' ' || row(excluded."ref", excluded."occupant_id")::text, true);
        if hookfold_set is not null then
            if not hookfold_set && array['status', 'invitee', 'row_version']::text[] then
                excluded."status" := null;
                excluded."invitee" := null;
                excluded."row_version" := null;
            elsif not hookfold_set @> array['status', 'invitee']::text[] then
                raise exception using errcode = '22023', message = 'hookfold.set names only some of status, invitee, which share the version row_version: name all of them or none';
            end if;
            if not hookfold_set && array['no_show', 'no_show_version']::text[] then
                excluded."no_show" := null;
                excluded."no_show_version" := null;
            end if;
        end if;
        return new;
    end if;
    if current_setting('hookfold.upsert', true) = tg_relid || ' ' || row(t."ref", t."occupant_id")::text then
        perform set_config('hookfold.upsert', '', true);
    elsif hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'
        and not (excluded."row_version" is distinct from t."row_version"
            or excluded."no_show_version" is distinct from t."no_show_version"
            or excluded."occupant_since" is distinct from t."occupant_since") then
        return new; -- a person's UPDATE
    end if;
    if hookfold_set is not null then
        if not hookfold_set && array['status', 'invitee', 'row_version']::text[] then
            excluded."status" := t."status";
            excluded."invitee" := t."invitee";
            excluded."row_version" := t."row_version";
        elsif not hookfold_set @> array['status', 'invitee']::text[] then
            raise exception using errcode = '22023', message = 'hookfold.set names only some of status, invitee, which share the version row_version: name all of them or none';
        end if;
        if not hookfold_set && array['no_show', 'no_show_version']::text[] then
            excluded."no_show" := t."no_show";
            excluded."no_show_version" := t."no_show_version";
        end if;
    end if;
    if (excluded."row_version" collate "C" >= coalesce(t."row_version", '') collate "C") is not true then
        excluded."status" := t."status";
        excluded."invitee" := t."invitee";
        excluded."row_version" := t."row_version";
    end if;
    if (excluded."no_show_version" collate "C" >= coalesce(t."no_show_version", '') collate "C") is not true then
        excluded."no_show" := t."no_show";
        excluded."no_show_version" := t."no_show_version";
    end if;
    if (excluded."occupant_since" is not null and (t."occupant_since" is null or excluded."occupant_since" collate "C" > t."occupant_since" collate "C")) is not true then
        excluded."occupant_since" := t."occupant_since";
    end if;
    if new operator(pg_catalog.*=) old then
        return null;
    end if;
    return new;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard on booking_occupants;
create trigger zz_hookfold_guard before insert or update on booking_occupants for each row execute function hookfold_guard_booking_occupants();
drop trigger if exists zz_hookfold_guard_done on booking_occupants;
create trigger zz_hookfold_guard_done after insert on booking_occupants for each statement execute function hookfold_guard_booking_occupants();
comment on column booking_occupants.row_version is 'Joined by Hookfold''s guard trigger bfc7cee232cc';
create or replace function hookfold_guard_booking_occupants_shows() returns trigger
language plpgsql
set search_path from current
as $hookfold$
begin
    if current_setting('hookfold.guard', true) is distinct from 'off' then
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
            from (select *, 1 from (values (new."ref", new."occupant_id", null, null)) as v) as v (p1, p2, p3, p4, hookfold_n)
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
    end if;
    return null;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard_shows on booking_occupants;
create trigger zz_hookfold_guard_shows after insert or update on booking_occupants for each row execute function hookfold_guard_booking_occupants_shows();
commit;

==== sqlite

-- table booking: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table booking: the guard trigger of MySQL does not show occupants in their row. Leave guard out, and let Hookfold alone write these columns

==== sqlserver

-- table booking: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

