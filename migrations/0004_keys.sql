-- Configuration documents, the repository registry, and API keys.

-- Every version of every configuration document; the newest is in force (contract 2).
create table config_documents (
  name text not null,
  version int not null check (version > 0),
  value jsonb not null,
  changed_at timestamptz not null,
  changed_by text,
  primary key (name, version)
);

create table repositories (
  id text primary key,
  full_name text not null,
  full_name_key text not null unique,
  clone_url text not null,
  default_branch text not null,
  environment_defaults jsonb,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table api_keys (
  -- The public part of the value. Never any secret character of it.
  id text primary key,
  -- SHA-256 of the whole value; nothing else derived from the secret is kept (contract 4).
  digest bytea not null unique,
  type text not null check (type in ('personal', 'service')),
  name text not null,
  scopes jsonb not null,
  repository_mode text not null check (repository_mode in ('all', 'selected')),
  owner_user_id text,
  created_at timestamptz not null,
  created_by text,
  -- The lifetime asked for at creation, in milliseconds; a rotation without a lifetime repeats it.
  lifetime_ms bigint,
  expires_at timestamptz,
  revoked_at timestamptz,
  revoked_by text,
  revoke_reason text,
  suspended_at timestamptz,
  -- Rotation: the successor names its predecessor; the predecessor its successor.
  replaces text references api_keys (id),
  replaced_by text references api_keys (id),
  grace_seconds int,
  first_used_at timestamptz,
  imported_at timestamptz,
  -- Set when the job has written the expiry event, so that it is written once.
  expiry_recorded_at timestamptz,
  check (type = 'personal' or owner_user_id is null)
);
create index api_keys_by_owner on api_keys (owner_user_id, created_at desc, id) where owner_user_id is not null;
create index api_keys_by_type on api_keys (type, created_at desc, id);
create index api_keys_by_time on api_keys (created_at desc, id);
create index api_keys_to_expire on api_keys (expires_at) where expires_at is not null and revoked_at is null and expiry_recorded_at is null;
create index api_keys_names on api_keys (lower(name) text_pattern_ops);

create table api_key_repositories (
  key_id text not null references api_keys (id),
  repository_id text not null references repositories (id) on delete cascade,
  primary key (key_id, repository_id)
);
create index api_key_repositories_by_repository on api_key_repositories (repository_id);

-- Usage lives apart from the key row: a write holds the key row FOR SHARE and must not wait for counters.
create table api_key_last_used (
  key_id text primary key references api_keys (id),
  last_used_at timestamptz not null
);

create table api_key_usage (
  key_id text not null references api_keys (id),
  per text not null check (per in ('minute', 'hour', 'day')),
  bucket timestamptz not null,
  outcome text not null check (outcome in ('allowed', 'denied', 'limited', 'failed', 'dead')),
  count bigint not null,
  primary key (key_id, per, bucket, outcome)
);
create index api_key_usage_to_prune on api_key_usage (per, bucket);

-- How many keys there are, kept by trigger: counting a million rows for every list page costs more than the page.
create table api_key_counts (
  type text primary key,
  total bigint not null
);
insert into api_key_counts (type, total) values ('personal', 0), ('service', 0);
create function count_api_key() returns trigger language plpgsql as $$
begin
  update api_key_counts set total = total + 1 where type = new.type;
  return null;
end $$;
create trigger api_keys_counted after insert on api_keys for each row execute function count_api_key();
