==== postgres

-- Guard trigger of table user for postgres.
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
--   drop trigger if exists zz_hookfold_guard on "user";
--   drop trigger if exists zz_hookfold_guard_done on "user";
--   drop function if exists hookfold_guard_user();
--   commit;

begin;
create or replace function hookfold_guard_user() returns trigger
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
        perform set_config('hookfold.upsert', tg_relid || ' ' || row(excluded."id")::text, true);
        return new;
    end if;
    if current_setting('hookfold.upsert', true) = tg_relid || ' ' || row(t."id")::text then
        perform set_config('hookfold.upsert', '', true);
    elsif hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on' then
        return new; -- a person's UPDATE
    end if;
    if new operator(pg_catalog.*=) old then
        return null;
    end if;
    return new;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard on "user";
create trigger zz_hookfold_guard before insert or update on "user" for each row execute function hookfold_guard_user();
drop trigger if exists zz_hookfold_guard_done on "user";
create trigger zz_hookfold_guard_done after insert on "user" for each statement execute function hookfold_guard_user();
commit;

==== sqlite

-- table user: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- Guard trigger of table user for mysql.
-- It may be run again, and has to be after the config or the table has changed (hookfold check --connect tells), and
-- after another trigger is added to the table: it has to run last. In this form it is for the mysql or mariadb client.
-- A writer sends plain rows with their versions, in any order, as often as it likes:
--   insert into ... values ... on duplicate key update <every column> = values(<column>)
-- (REPLACE INTO removes the row first, which no trigger can mend.)
-- A column without a version of its own says nothing if it is NULL, a scope if its version is NULL.
-- Until the session ends, or they are set to NULL:
--   set @hookfold_set = 'a,b'       only these columns are meant; the others say nothing, whatever they hold; ',' is none
--   set @hookfold_guard = 'on'      join every UPDATE too; without it one that moves no version passes as it is
--   set @hookfold_guard = 'off'     let everything pass as it is

-- To remove it:
--   drop trigger if exists `hookfold_guard_user_update`;
--   drop trigger if exists `hookfold_guard_user_insert`;
--   drop trigger if exists `hookfold_guard_user_done`;

delimiter //
drop trigger if exists `hookfold_guard_user_update`//
create trigger `hookfold_guard_user_update` before update on `user` for each row
hookfold: begin
    if @hookfold_guard = 'off' then
        leave hookfold;
    end if;
    if @hookfold_upsert = cast(concat_ws(' ', now(6), 'user', hex(old.`id`)) as binary) then
        set @hookfold_upsert = null;
    elseif locate(cast(concat(now(6), ' ', 'user ') as binary), @hookfold_upsert) = 1 then
        set @hookfold_error = left('another row holds a unique value of the one that is inserted, and would be overwritten', 128);
        signal sqlstate '45000' set message_text = @hookfold_error;
    elseif not (nullif(@hookfold_set, '') is not null) and coalesce(@hookfold_guard, '') <> 'on' then
        leave hookfold;
    end if;
end//
drop trigger if exists `hookfold_guard_user_insert`//
create trigger `hookfold_guard_user_insert` before insert on `user` for each row
hookfold: begin
    if @hookfold_guard = 'off' then
        leave hookfold;
    end if;
    set @hookfold_upsert = cast(concat_ws(' ', now(6), 'user', hex(new.`id`)) as binary);
end//
drop trigger if exists `hookfold_guard_user_done`//
create trigger `hookfold_guard_user_done` after insert on `user` for each row
set @hookfold_upsert = null//
delimiter ;

==== sqlserver

-- table user: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

