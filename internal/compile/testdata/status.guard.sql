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

-- Guard trigger of table message_status for mysql.
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
--   drop trigger if exists `hookfold_guard_message_status_update`;
--   drop trigger if exists `hookfold_guard_message_status_insert`;
--   drop trigger if exists `hookfold_guard_message_status_done`;

delimiter //
drop trigger if exists `hookfold_guard_message_status_update`//
create trigger `hookfold_guard_message_status_update` before update on `message_status` for each row
hookfold: begin
    if @hookfold_guard = 'off' then
        leave hookfold;
    end if;
    if @hookfold_upsert = cast(concat_ws(' ', now(6), 'message_status', hex(old.`message_id`)) as binary) then
        set @hookfold_upsert = null;
    elseif locate(cast(concat(now(6), ' ', 'message_status ') as binary), @hookfold_upsert) = 1 then
        set @hookfold_error = left('another row holds a unique value of the one that is inserted, and would be overwritten', 128);
        signal sqlstate '45000' set message_text = @hookfold_error;
    elseif not (nullif(@hookfold_set, '') is not null) and coalesce(@hookfold_guard, '') <> 'on'
        and not (not (cast(convert(new.`error_version` using utf8mb4) as binary) <=> cast(convert(old.`error_version` using utf8mb4) as binary))) then
        leave hookfold;
    end if;
    if nullif(@hookfold_set, '') is not null then
        if not (find_in_set('error', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('error_version', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`error` = old.`error`;
            set new.`error_version` = old.`error_version`;
        end if;
        if not (find_in_set('status', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`status` = old.`status`;
        end if;
        if not (find_in_set('sent_at', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`sent_at` = old.`sent_at`;
        end if;
    end if;
    if new.`status` is not null and not (cast(new.`status` as binary) <=> cast(old.`status` as binary)) and (case cast(new.`status` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) = 0 then
        set @hookfold_error = left(concat(new.`status`, ' is not a step of the ladder of column status (sent, failed, delivered, read, played)'), 128);
        signal sqlstate '45000' set message_text = @hookfold_error;
    end if;
    if (cast(new.`error_version` as binary) >= cast(coalesce(old.`error_version`, '') as binary)) is not true then
        set new.`error` = old.`error`;
        set new.`error_version` = old.`error_version`;
    end if;
    if (new.`status` is not null and (old.`status` is null or case cast(new.`status` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case cast(old.`status` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end)) is not true then
        set new.`status` = old.`status`;
    end if;
    if (new.`sent_at` is not null and (old.`sent_at` is null or old.`sent_at` > new.`sent_at`)) is not true then
        set new.`sent_at` = old.`sent_at`;
    end if;
end//
drop trigger if exists `hookfold_guard_message_status_insert`//
create trigger `hookfold_guard_message_status_insert` before insert on `message_status` for each row
hookfold: begin
    if @hookfold_guard = 'off' then
        leave hookfold;
    end if;
    set @hookfold_upsert = cast(concat_ws(' ', now(6), 'message_status', hex(new.`message_id`)) as binary);
    if nullif(@hookfold_set, '') is not null then
        if not (find_in_set('error', replace(@hookfold_set, ' ', '')) > 0 or find_in_set('error_version', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`error` = null;
            set new.`error_version` = null;
        end if;
        if not (find_in_set('status', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`status` = null;
        end if;
        if not (find_in_set('sent_at', replace(@hookfold_set, ' ', '')) > 0) then
            set new.`sent_at` = null;
        end if;
    end if;
    if new.`status` is not null and (nullif(@hookfold_set, '') is not null or new.`error_version` is not null) and (case cast(new.`status` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) = 0 then
        set @hookfold_error = left(concat(new.`status`, ' is not a step of the ladder of column status (sent, failed, delivered, read, played)'), 128);
        signal sqlstate '45000' set message_text = @hookfold_error;
    end if;
end//
drop trigger if exists `hookfold_guard_message_status_done`//
create trigger `hookfold_guard_message_status_done` after insert on `message_status` for each row
set @hookfold_upsert = null//
delimiter ;

==== sqlserver

-- table message_status: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

