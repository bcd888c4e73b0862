-- What people should know about their keys (contract 10.14). A null user means: every administrator.
create table notices (
  id text primary key,
  user_id text,
  kind text not null check (kind in (
    'key_expires_7d', 'key_expires_1d', 'key_expired', 'key_exposed', 'key_dead_use', 'key_suspended')),
  -- The public id of the key it is about.
  subject text not null,
  fields jsonb not null,
  -- Recipient, kind, key and occasion: the same thing is told once, however often a job finds it.
  dedupe_key text not null unique,
  created_at timestamptz(3) not null,
  read_at timestamptz(3)
);
create index notices_by_user on notices (user_id, created_at, id);
