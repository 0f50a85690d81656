==== postgres

-- Guard trigger of table payment for postgres.
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
--   drop trigger if exists zz_hookfold_guard on payment;
--   drop trigger if exists zz_hookfold_guard_done on payment;
--   drop function if exists hookfold_guard_payment();
--   comment on column payment.row_version is null;
--   commit;

begin;
create or replace function hookfold_guard_payment() returns trigger
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
        if hookfold_set is not null then
            if not hookfold_set && array['user_id', 'amount', 'paid_at', 'row_version']::text[] then
                excluded."user_id" := null;
                excluded."amount" := null;
                excluded."paid_at" := null;
                excluded."row_version" := null;
            elsif not hookfold_set @> array['user_id', 'amount', 'paid_at']::text[] then
                raise exception using errcode = '22023', message = 'hookfold.set names only some of user_id, amount, paid_at, which share the version row_version: name all of them or none';
            end if;
        end if;
        return new;
    end if;
    if current_setting('hookfold.upsert', true) = tg_relid || ' ' || row(t."id")::text then
        perform set_config('hookfold.upsert', '', true);
    elsif hookfold_set is null and current_setting('hookfold.guard', true) is distinct from 'on'
        and not (excluded."row_version" is distinct from t."row_version") then
        return new; -- a person's UPDATE
    end if;
    if hookfold_set is not null then
        if not hookfold_set && array['user_id', 'amount', 'paid_at', 'row_version']::text[] then
            excluded."user_id" := t."user_id";
            excluded."amount" := t."amount";
            excluded."paid_at" := t."paid_at";
            excluded."row_version" := t."row_version";
        elsif not hookfold_set @> array['user_id', 'amount', 'paid_at']::text[] then
            raise exception using errcode = '22023', message = 'hookfold.set names only some of user_id, amount, paid_at, which share the version row_version: name all of them or none';
        end if;
    end if;
    if (excluded."row_version" collate "C" >= coalesce(t."row_version", '') collate "C") is not true then
        excluded."user_id" := t."user_id";
        excluded."amount" := t."amount";
        excluded."paid_at" := t."paid_at";
        excluded."row_version" := t."row_version";
    end if;
    if new operator(pg_catalog.*=) old then
        return null;
    end if;
    return new;
end
$hookfold$;
drop trigger if exists zz_hookfold_guard on payment;
create trigger zz_hookfold_guard before insert or update on payment for each row execute function hookfold_guard_payment();
drop trigger if exists zz_hookfold_guard_done on payment;
create trigger zz_hookfold_guard_done after insert on payment for each statement execute function hookfold_guard_payment();
comment on column payment.row_version is 'Joined by Hookfold''s guard trigger cd3eae2b06fe';
commit;

==== sqlite

-- table payment: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- Guard trigger of table payment for mysql.
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
--   drop trigger if exists `hookfold_guard_payment_update`;
--   drop trigger if exists `hookfold_guard_payment_insert`;
--   drop trigger if exists `hookfold_guard_payment_done`;

delimiter //
drop trigger if exists `hookfold_guard_payment_update`//
create trigger `hookfold_guard_payment_update` before update on `payment` for each row
hookfold: begin
    if @hookfold_guard = 'off' then
        leave hookfold;
    end if;
    if @hookfold_upsert = cast(concat_ws(' ', now(6), 'payment', hex(old.`id`)) as binary) then
        set @hookfold_upsert = null;
    elseif locate(cast(concat(now(6), ' ', 'payment ') as binary), @hookfold_upsert) = 1 then
        set @hookfold_error = left('another row holds a unique value of the one that is inserted, and would be overwritten', 128);
        signal sqlstate '45000' set message_text = @hookfold_error;
    elseif not (nullif(@hookfold_set, '') is not null) and coalesce(@hookfold_guard, '') <> 'on'
        and not (not (cast(convert(new.`row_version` using utf8mb4) as binary) <=> cast(convert(old.`row_version` using utf8mb4) as binary))) then
        leave hookfold;
    end if;
    if nullif(@hookfold_set, '') is not null then
        if not (find_in_set('user_id', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('amount', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('paid_at', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('row_version', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`user_id` = old.`user_id`;
            set new.`amount` = old.`amount`;
            set new.`paid_at` = old.`paid_at`;
            set new.`row_version` = old.`row_version`;
        elseif not (find_in_set('user_id', replace(@hookfold_set, ' ', '')) > 0 and find_in_set('amount', replace(@hookfold_set, ' ', '')) > 0 and find_in_set('paid_at', replace(@hookfold_set, ' ', '')) > 0) then
            set @hookfold_error = left('hookfold.set names only some of user_id, amount, paid_at, which share the version row_version: name all of them or none', 128);
            signal sqlstate '45000' set message_text = @hookfold_error;
        end if;
    end if;
    if (cast(new.`row_version` as binary) >= cast(coalesce(old.`row_version`, '') as binary)) is not true then
        set new.`user_id` = old.`user_id`;
        set new.`amount` = old.`amount`;
        set new.`paid_at` = old.`paid_at`;
        set new.`row_version` = old.`row_version`;
    end if;
end//
drop trigger if exists `hookfold_guard_payment_insert`//
create trigger `hookfold_guard_payment_insert` before insert on `payment` for each row
hookfold: begin
    if @hookfold_guard = 'off' then
        leave hookfold;
    end if;
    set @hookfold_upsert = cast(concat_ws(' ', now(6), 'payment', hex(new.`id`)) as binary);
    if nullif(@hookfold_set, '') is not null then
        if not (find_in_set('user_id', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('amount', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('paid_at', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('row_version', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`user_id` = null;
            set new.`amount` = null;
            set new.`paid_at` = null;
            set new.`row_version` = null;
        elseif not (find_in_set('user_id', replace(@hookfold_set, ' ', '')) > 0 and find_in_set('amount', replace(@hookfold_set, ' ', '')) > 0 and find_in_set('paid_at', replace(@hookfold_set, ' ', '')) > 0) then
            set @hookfold_error = left('hookfold.set names only some of user_id, amount, paid_at, which share the version row_version: name all of them or none', 128);
            signal sqlstate '45000' set message_text = @hookfold_error;
        end if;
    end if;
end//
drop trigger if exists `hookfold_guard_payment_done`//
create trigger `hookfold_guard_payment_done` after insert on `payment` for each row
set @hookfold_upsert = null//
delimiter ;

==== sqlserver

-- table payment: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

