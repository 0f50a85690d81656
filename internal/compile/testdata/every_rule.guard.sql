==== postgres

-- Guard trigger of table every_rule for postgres.
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
--   drop trigger if exists zz_hookfold_guard on every_rule;
--   drop trigger if exists zz_hookfold_guard_done on every_rule;
--   drop function if exists hookfold_guard_every_rule();
--   comment on column every_rule.row_version is null;
--   commit;

begin;
create or replace function hookfold_guard_every_rule() returns trigger
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
        perform set_config('hookfold.upsert', tg_relid || ' ' || row(excluded."tenant", excluded."no")::text, true);
        if hookfold_set is not null then
            if not hookfold_set && array['status', 'amount', 'row_version']::text[] then
                excluded."status" := null;
                excluded."amount" := null;
                excluded."row_version" := null;
            elsif not hookfold_set @> array['status', 'amount']::text[] then
                raise exception using errcode = '22023', message = 'hookfold.set names only some of status, amount, which share the version row_version: name all of them or none';
            end if;
            if not hookfold_set && array['note', 'note_version']::text[] then
                excluded."note" := null;
                excluded."note_version" := null;
            end if;
            if not hookfold_set && array['origin', 'origin__first']::text[] then
                excluded."origin" := null;
                excluded."origin__first" := null;
            end if;
            if not hookfold_set && array['top']::text[] then
                excluded."top" := null;
            end if;
            if not hookfold_set && array['name']::text[] then
                excluded."name" := null;
            end if;
            if not hookfold_set && array['since']::text[] then
                excluded."since" := null;
            end if;
            if not hookfold_set && array['step']::text[] then
                excluded."step" := null;
            end if;
            if not hookfold_set && array['tags']::text[] then
                excluded."tags" := null;
            end if;
        end if;
        if excluded."step" is not null and (hookfold_set is not null or excluded."row_version" is not null or excluded."note_version" is not null or excluded."origin__first" is not null) and (case excluded."step" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end) = 0 then
            raise exception using errcode = '23514', message = concat(excluded."step", ' is not a step of the ladder of column step (sent, failed, delivered, read)');
        end if;
        if excluded."tags" is not null then
            excluded."tags" := array(select distinct x collate "C" from unnest(excluded."tags" || excluded."tags") as x where x is not null order by 1);
        end if;
        excluded."changed_at" := clock_timestamp();
        return new;
    end if;
    if current_setting('hookfold.upsert', true) = tg_relid || ' ' || row(t."tenant", t."no")::text then
        perform set_config('hookfold.upsert', '', true);
    elsif hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'
        and not (excluded."row_version" is distinct from t."row_version"
            or excluded."note_version" is distinct from t."note_version"
            or excluded."origin__first" is distinct from t."origin__first") then
        return new; -- a person's UPDATE
    end if;
    if hookfold_set is not null then
        if not hookfold_set && array['status', 'amount', 'row_version']::text[] then
            excluded."status" := t."status";
            excluded."amount" := t."amount";
            excluded."row_version" := t."row_version";
        elsif not hookfold_set @> array['status', 'amount']::text[] then
            raise exception using errcode = '22023', message = 'hookfold.set names only some of status, amount, which share the version row_version: name all of them or none';
        end if;
        if not hookfold_set && array['note', 'note_version']::text[] then
            excluded."note" := t."note";
            excluded."note_version" := t."note_version";
        end if;
        if not hookfold_set && array['origin', 'origin__first']::text[] then
            excluded."origin" := t."origin";
            excluded."origin__first" := t."origin__first";
        end if;
        if not hookfold_set && array['top']::text[] then
            excluded."top" := t."top";
        end if;
        if not hookfold_set && array['name']::text[] then
            excluded."name" := t."name";
        end if;
        if not hookfold_set && array['since']::text[] then
            excluded."since" := t."since";
        end if;
        if not hookfold_set && array['step']::text[] then
            excluded."step" := t."step";
        end if;
        if not hookfold_set && array['tags']::text[] then
            excluded."tags" := t."tags";
        end if;
    end if;
    if excluded."step" is not null and excluded."step" is distinct from t."step" and (case excluded."step" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end) = 0 then
        raise exception using errcode = '23514', message = concat(excluded."step", ' is not a step of the ladder of column step (sent, failed, delivered, read)');
    end if;
    if (excluded."row_version" collate "C" >= coalesce(t."row_version", '') collate "C") is not true then
        excluded."status" := t."status";
        excluded."amount" := t."amount";
        excluded."row_version" := t."row_version";
    end if;
    if (excluded."note_version" collate "C" >= coalesce(t."note_version", '') collate "C") is not true then
        excluded."note" := t."note";
        excluded."note_version" := t."note_version";
    end if;
    if (excluded."origin__first" is not null and (t."origin__first" is null and t."origin" is null or excluded."origin__first" collate "C" <= t."origin__first" collate "C")) is not true then
        excluded."origin" := t."origin";
        excluded."origin__first" := t."origin__first";
    end if;
    if (excluded."top" is not null and (t."top" is null or excluded."top" > t."top")) is not true then
        excluded."top" := t."top";
    end if;
    if (excluded."name" is not null and (t."name" is null or excluded."name" collate "C" > t."name" collate "C")) is not true then
        excluded."name" := t."name";
    end if;
    if (excluded."since" is not null and (t."since" is null or t."since" > excluded."since")) is not true then
        excluded."since" := t."since";
    end if;
    if (excluded."step" is not null and (t."step" is null or case excluded."step" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t."step" collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end)) is not true then
        excluded."step" := t."step";
    end if;
    if (excluded."tags" is not null) then
        excluded."tags" := case when t."tags" is null then excluded."tags" else array(select distinct x collate "C" from unnest(t."tags" || excluded."tags") as x where x is not null order by 1) end;
    else
        excluded."tags" := t."tags";
    end if;
    excluded."changed_at" := case when excluded."status" is distinct from t."status"
        or excluded."amount" is distinct from t."amount"
        or excluded."note" is distinct from t."note"
        or excluded."origin" is distinct from t."origin"
        or excluded."top" is distinct from t."top"
        or excluded."name" is distinct from t."name"
        or excluded."since" is distinct from t."since"
        or excluded."step" is distinct from t."step"
        or excluded."tags" is distinct from t."tags" then clock_timestamp() else t."changed_at" end;
    if new operator(pg_catalog.*=) old then
        return null;
    end if;
    return new;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard on every_rule;
create trigger zz_hookfold_guard before insert or update on every_rule for each row execute function hookfold_guard_every_rule();
drop trigger if exists zz_hookfold_guard_done on every_rule;
create trigger zz_hookfold_guard_done after insert on every_rule for each statement execute function hookfold_guard_every_rule();
comment on column every_rule.row_version is 'Joined by Hookfold''s guard trigger 7d9979b9436c';
commit;

==== sqlite

-- table every_rule: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table every_rule: column tags: union joins lists of JSON, which MySQL and MariaDB write differently, and a trigger is of one form for both. Leave guard out, and let Hookfold alone write these columns

==== sqlserver

-- table every_rule: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

