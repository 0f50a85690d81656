==== postgres

-- Guard trigger of table message_status for postgres.
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
--   drop trigger if exists zz_hookfold_guard on message_status;
--   drop trigger if exists zz_hookfold_guard_done on message_status;
--   drop function if exists hookfold_guard_message_status();
--   comment on column message_status.error_version is null;
--   commit;

begin;
create or replace function hookfold_guard_message_status() returns trigger
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
        perform set_config('hookfold.upsert', tg_relid || ' ' || row(excluded."message_id")::text, true);
        if hookfold_set is not null then
            if not hookfold_set && array['error', 'error_version']::text[] then
                excluded."error" := null;
                excluded."error_version" := null;
            end if;
            if not hookfold_set && array['status']::text[] then
                excluded."status" := null;
            end if;
            if not hookfold_set && array['sent_at']::text[] then
                excluded."sent_at" := null;
            end if;
        end if;
        if excluded."status" is not null and (hookfold_set is not null or excluded."error_version" is not null) and (case excluded."status" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) = 0 then
            raise exception using errcode = '23514', message = concat(excluded."status", ' is not a step of the ladder of column status (sent, failed, delivered, read, played)');
        end if;
        return new;
    end if;
    if current_setting('hookfold.upsert', true) = tg_relid || ' ' || row(t."message_id")::text then
        perform set_config('hookfold.upsert', '', true);
    elsif hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'
        and not (excluded."error_version" is distinct from t."error_version") then
        return new; -- a person's UPDATE
    end if;
    if hookfold_set is not null then
        if not hookfold_set && array['error', 'error_version']::text[] then
            excluded."error" := t."error";
            excluded."error_version" := t."error_version";
        end if;
        if not hookfold_set && array['status']::text[] then
            excluded."status" := t."status";
        end if;
        if not hookfold_set && array['sent_at']::text[] then
            excluded."sent_at" := t."sent_at";
        end if;
    end if;
    if excluded."status" is not null and excluded."status" is distinct from t."status" and (case excluded."status" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) = 0 then
        raise exception using errcode = '23514', message = concat(excluded."status", ' is not a step of the ladder of column status (sent, failed, delivered, read, played)');
    end if;
    if (excluded."error_version" collate "C" >= coalesce(t."error_version", '') collate "C") is not true then
        excluded."error" := t."error";
        excluded."error_version" := t."error_version";
    end if;
    if (excluded."status" is not null and (t."status" is null or case excluded."status" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t."status" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end)) is not true then
        excluded."status" := t."status";
    end if;
    if (excluded."sent_at" is not null and (t."sent_at" is null or t."sent_at" > excluded."sent_at")) is not true then
        excluded."sent_at" := t."sent_at";
    end if;
    if new operator(pg_catalog.*=) old then
        return null;
    end if;
    return new;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard on message_status;
create trigger zz_hookfold_guard before insert or update on message_status for each row execute function hookfold_guard_message_status();
drop trigger if exists zz_hookfold_guard_done on message_status;
create trigger zz_hookfold_guard_done after insert on message_status for each statement execute function hookfold_guard_message_status();
comment on column message_status.error_version is 'Joined by Hookfold''s guard trigger 5c930d6fc9dd';
commit;

==== sqlite

-- table message_status: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table message_status: there is no guard trigger for MySQL yet. Whoever else writes the table can run the statement that hookfold sql prints

==== sqlserver

-- table message_status: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

