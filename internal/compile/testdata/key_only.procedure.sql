==== postgres

-- Function that joins a row into table user for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_user(id => …);
--   id: key, uuid
-- To remove it: drop function if exists hookfold_user;

begin;
drop function if exists hookfold_user;
create function hookfold_user(
    id uuid
) returns boolean
language plpgsql
set search_path from current
as $hookfold$
#variable_conflict use_column
declare
    hookfold_count bigint;
    hookfold_written bigint := 0;
begin
    insert into "user" as t (id)
    select v.p1::uuid
    from (values ($1)) as v (p1)
    on conflict (id) do nothing;
    get diagnostics hookfold_count = row_count;
    hookfold_written := hookfold_written + hookfold_count;
    return hookfold_written > 0;
end
$hookfold$;
commit;

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

