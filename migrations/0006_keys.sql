-- API keys, their repositories and their usage.

create table api_keys (
  -- The public part of the value, with no secret character.
  id text primary key,
  -- SHA-256 of the whole value. Nothing else derived from the secret is stored (contract 4).
  digest bytea not null unique,
  type text not null constraint api_keys_type_check check (type in ('personal', 'service')),
  name text not null,
  scopes jsonb not null,
  repository_mode text not null
    constraint api_keys_repository_mode_check check (repository_mode in ('all', 'selected')),
  owner_user_id text,
  created_at timestamptz not null,
  created_by text,
  -- The lifetime requested at creation, in milliseconds; a rotation without a lifetime repeats it.
  lifetime_ms bigint,
  expires_at timestamptz,
  revoked_at timestamptz,
  revoked_by text,
  revoke_reason text,
  suspended_at timestamptz,
  -- Rotation: the successor names its predecessor, and the predecessor its successor.
  replaces text references api_keys (id),
  replaced_by text references api_keys (id),
  grace_seconds int,
  first_used_at timestamptz,
  imported_at timestamptz,
  -- When the job wrote the expiry event, so that it writes it once.
  expiry_recorded_at timestamptz,
  constraint api_keys_check check (type = 'personal' or owner_user_id is null)
);
create index api_keys_by_owner on api_keys (owner_user_id, created_at desc, id) where owner_user_id is not null;
create index api_keys_by_scope on api_keys using gin (scopes);
create index api_keys_names on api_keys (lower(name) text_pattern_ops);
create index api_keys_to_expire on api_keys (expires_at)
  where expires_at is not null and revoked_at is null and expiry_recorded_at is null;
-- The orders of the list, of all keys and of one type.
create index api_keys_by_time on api_keys (created_at desc, id);
create index api_keys_by_type on api_keys (type, created_at desc, id);
create index api_keys_in_name_order on api_keys (lower(name), id);
create index api_keys_of_type_in_name_order on api_keys (type, lower(name), id);
create index api_keys_in_expiry_order on api_keys (expires_at, id);
create index api_keys_of_type_in_expiry_order on api_keys (type, expires_at, id);

create table api_key_repositories (
  key_id text not null references api_keys (id),
  repository_id text not null references repositories (id) on delete cascade,
  primary key (key_id, repository_id)
);
create index api_key_repositories_by_repository on api_key_repositories (repository_id);

-- Usage is apart from the key: a write holds the row of its key FOR SHARE, and must not wait for counters. Each key has a row
-- from its creation on, so that one index also orders the keys that were never used.
create table api_key_last_used (
  key_id text primary key references api_keys (id),
  last_used_at timestamptz,
  -- Where that request came from: a network, never a whole address, and the client program.
  network text,
  program text
);
create index api_key_last_used_in_order on api_key_last_used (last_used_at desc nulls last, key_id);
create function begin_api_key_use() returns trigger language plpgsql as $$
begin
  insert into api_key_last_used (key_id, last_used_at) values (new.id, null);
  return null;
end $$;
create trigger api_keys_use_begun after insert on api_keys for each row execute function begin_api_key_use();

create table api_key_usage (
  key_id text not null references api_keys (id),
  per text not null constraint api_key_usage_per_check check (per in ('minute', 'hour', 'day')),
  bucket timestamptz not null,
  outcome text not null
    constraint api_key_usage_outcome_check check (outcome in ('allowed', 'denied', 'limited', 'failed', 'dead')),
  count bigint not null,
  primary key (key_id, per, bucket, outcome)
);
create index api_key_usage_to_prune on api_key_usage (per, bucket);

-- The sums of api_key_usage over all keys: summing a million rows for each look costs more than the look.
create table api_key_usage_totals (
  per text not null constraint api_key_usage_totals_per_check check (per in ('minute', 'hour', 'day')),
  bucket timestamptz not null,
  outcome text not null
    constraint api_key_usage_totals_outcome_check check (outcome in ('allowed', 'denied', 'limited', 'failed', 'dead')),
  count bigint not null,
  primary key (per, bucket, outcome)
);

-- The number of keys, for the total of each page of a list.
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
