-- What users should know about their keys and sites (contract 10.14). Without a user, the notice is for all administrators.
create table notices (
  id text primary key,
  user_id text,
  kind text not null constraint notices_kind_check check (kind in (
    'key_expires_7d', 'key_expires_1d', 'key_expired', 'key_exposed', 'key_dead_use', 'key_suspended',
    'site_expires_7d', 'site_expires_1d', 'site_expired', 'site_taken_down', 'site_put_back')),
  -- The public id of the key, or the id of the site.
  subject text not null,
  fields jsonb not null,
  -- Recipient, kind, subject and occasion: a job that finds the same thing again adds no second notice.
  dedupe_key text not null unique,
  created_at timestamptz(3) not null,
  read_at timestamptz(3)
);
create index notices_by_user on notices (user_id, created_at, id);
