==== postgres

-- Guard trigger of table customer for postgres.
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
--   drop trigger if exists zz_hookfold_guard on customer;
--   drop trigger if exists zz_hookfold_guard_done on customer;
--   drop function if exists hookfold_guard_customer();
--   comment on column customer.row_version is null;
--   commit;

begin;
create or replace function hookfold_guard_customer() returns trigger
language plpgsql
set search_path from current
as $hookfold$
declare
    excluded alias for new;
    t alias for old;
    hookfold_set text[];
    hookfold_key text;
    hookfold_bytes bytea;
    hookfold_hash bigint := 2166136261;
    hookfold_version text;
    hookfold_at timestamp with time zone;
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
        perform set_config('hookfold.upsert', tg_relid || ' ' || row(excluded."id")::text, true);
        if hookfold_set is not null then
            if not hookfold_set && array['email', 'row_version']::text[] then
                excluded."email" := null;
                excluded."row_version" := null;
            end if;
            if not hookfold_set && array['plan', 'plan__first']::text[] then
                excluded."plan" := null;
                excluded."plan__first" := null;
            end if;
        end if;
        if current_setting('transaction_isolation') not like 'read %' then
            raise exception 'the guard trigger needs a transaction that is READ COMMITTED: what another one has deleted would not be seen' using errcode = 'invalid_transaction_state';
        end if;
        hookfold_bytes := convert_to('customer', 'UTF8') || decode('00', 'hex') || convert_to(excluded."id"::text, 'UTF8');
        for hookfold_n in 0 .. length(hookfold_bytes) - 1 loop
            hookfold_hash := ((hookfold_hash # get_byte(hookfold_bytes, hookfold_n)) * 16777619) & 4294967295;
        end loop;
        perform pg_advisory_xact_lock(1752133483, (hookfold_hash % 1024)::int4);
        hookfold_key := '[' || replace(replace(replace(replace(replace(to_json(excluded."id"::text)::text, '<', '\u003c'), '>', '\u003e'), '&', '\u0026'), chr(8232), '\u2028'), chr(8233), '\u2029') || ']';
        select b.delete_version, b.deleted_at into hookfold_version, hookfold_at from hookfold_tombstones as b where b.table_name = 'customer' and b.key = hookfold_key;
        if not found then
            select b.purged_upto into hookfold_version from hookfold_meta as b where b.table_name = 'customer';
            if found and greatest(excluded."seen_version" collate "C", excluded."delete_version" collate "C") collate "C" <= hookfold_version collate "C" and not exists (select from customer as r where r.id = excluded."id") then
                if excluded."seen_version" is not null then
                    raise exception 'older than the purge horizon: deletes up to version % have been purged, so it cannot be told any more whether this row was deleted after it', hookfold_version using errcode = 'check_violation';
                end if;
                return null;
            end if;
            hookfold_version := null;
        end if;
        if excluded."delete_version" is not null and excluded."seen_version" is null then
            -- A delete. It marks the row, or is remembered until there is one.
            update customer as r set "delete_version" = excluded."delete_version", "deleted_at" = excluded."deleted_at" where r.id = excluded."id";
            if not exists (select from customer as r where r.id = excluded."id") and coalesce(hookfold_version collate "C", '') < excluded."delete_version" collate "C" then
                update hookfold_tombstones as b set delete_version = excluded."delete_version", deleted_at = excluded."deleted_at", stored_at = clock_timestamp() where b.table_name = 'customer' and b.key = hookfold_key;
                if not found then
                    insert into hookfold_tombstones (table_name, key, delete_version, deleted_at, stored_at) values ('customer', hookfold_key, excluded."delete_version", excluded."deleted_at", clock_timestamp());
                end if;
            end if;
            return null;
        end if;
        if hookfold_version is not null then
            delete from hookfold_tombstones as b where b.table_name = 'customer' and b.key = hookfold_key;
            if coalesce(excluded."delete_version" collate "C", '') < hookfold_version collate "C" then
                excluded."delete_version" := hookfold_version;
                excluded."deleted_at" := hookfold_at;
            end if;
        end if;
        if not coalesce(excluded."delete_version" collate "C" > coalesce(excluded."seen_version" collate "C", ''), false) then
            excluded."deleted_at" := null;
        end if;
        excluded."changed_at" := clock_timestamp();
        return new;
    end if;
    if current_setting('hookfold.upsert', true) = tg_relid || ' ' || row(t."id")::text then
        perform set_config('hookfold.upsert', '', true);
    elsif hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'
        and not (excluded."row_version" is distinct from t."row_version"
            or excluded."plan__first" is distinct from t."plan__first"
            or excluded."seen_version" is distinct from t."seen_version"
            or excluded."delete_version" is distinct from t."delete_version") then
        return new; -- a person's UPDATE
    end if;
    if hookfold_set is not null then
        if not hookfold_set && array['email', 'row_version']::text[] then
            excluded."email" := t."email";
            excluded."row_version" := t."row_version";
        end if;
        if not hookfold_set && array['plan', 'plan__first']::text[] then
            excluded."plan" := t."plan";
            excluded."plan__first" := t."plan__first";
        end if;
    end if;
    if (excluded."row_version" collate "C" >= coalesce(t."row_version", '') collate "C") is not true then
        excluded."email" := t."email";
        excluded."row_version" := t."row_version";
    end if;
    if (excluded."plan__first" is not null and (t."plan__first" is null and t."plan" is null or excluded."plan__first" collate "C" <= t."plan__first" collate "C")) is not true then
        excluded."plan" := t."plan";
        excluded."plan__first" := t."plan__first";
    end if;
    if coalesce(excluded."seen_version" collate "C", '') < coalesce(t."seen_version" collate "C", '') then
        excluded."seen_version" := t."seen_version";
    end if;
    if coalesce(excluded."delete_version" collate "C", '') < coalesce(t."delete_version" collate "C", '') then
        excluded."delete_version" := t."delete_version";
        excluded."deleted_at" := t."deleted_at";
    end if;
    if not coalesce(excluded."delete_version" collate "C" > coalesce(excluded."seen_version" collate "C", ''), false) then
        excluded."deleted_at" := null;
    end if;
    excluded."changed_at" := case when excluded."email" is distinct from t."email"
        or excluded."plan" is distinct from t."plan"
        or excluded."deleted_at" is distinct from t."deleted_at" then clock_timestamp() else t."changed_at" end;
    if new operator(pg_catalog.*=) old then
        return null;
    end if;
    return new;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard on customer;
create trigger zz_hookfold_guard before insert or update on customer for each row execute function hookfold_guard_customer();
drop trigger if exists zz_hookfold_guard_done on customer;
create trigger zz_hookfold_guard_done after insert on customer for each statement execute function hookfold_guard_customer();
comment on column customer.row_version is 'Joined by Hookfold''s guard trigger 8fc28cfcdf36';
commit;

==== sqlite

-- table customer: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table customer: a delete of a row that is not there would have to leave out the INSERT, which a trigger of MySQL cannot. Leave guard out, and let Hookfold alone write these columns

==== sqlserver

-- table customer: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

