create table booking (ref text primary key, status text, invitee text, start_at text);
-- Update, and insert if nothing was updated: so nobody thought of a unique key.
create table message_status (message_id text, status text, sent_at text, delivered_at text, read_at text);
create index message_status_id on message_status (message_id);
create table app_user (id text primary key, email text, plan text);
create table payment (id text primary key, user_id text references app_user (id), amount text, status text);
create table ticket (id text primary key, user_id text references app_user (id), status text);
