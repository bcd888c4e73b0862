-- Keys without a value: a pipeline exchanges the ID token of its platform for a short-lived token of the key.
-- Null: a federated key. No value can be presented for it.
alter table api_keys
  alter column digest drop not null,
  add constraint api_keys_digest_check check (digest is not null or type = 'service'),
  -- SHA-256 of the digest of an imported value that was erased: an import that is repeated skips its record.
  add column erased_import bytea;
create unique index api_keys_by_erased_import on api_keys (erased_import) where erased_import is not null;

-- Which ID tokens a key accepts. A rule is never changed, only added and removed.
create table api_key_trust (
  id text primary key,
  -- In the order in which they were added, which is the order in which an exchange tries them.
  position bigint generated always as identity,
  key_id text not null references api_keys (id),
  issuer text not null,
  -- The claims that an ID token must have, by name or JSON Pointer, with their texts.
  claims jsonb not null,
  max_ttl_minutes int not null,
  max_age_minutes int not null,
  single_use boolean not null,
  created_at timestamptz not null,
  created_by text
);
create index api_key_trust_by_key on api_key_trust (key_id, position);

-- The public keys that issuers publish. All processes share the time of the last fetch, so that together they fetch once a minute.
create table issuer_key_sets (
  issuer text primary key,
  tried_at timestamptz not null,
  -- Null: the keys never arrived.
  fetched_at timestamptz,
  keys jsonb not null
);

-- Tokens that ID tokens were exchanged for. Each ends with its rule, its key, the issuer in the policy, or its time.
create table exchanged_tokens (
  -- The public id in the value.
  id text primary key,
  -- SHA-256 of the whole value.
  digest bytea not null unique,
  key_id text not null references api_keys (id),
  rule_id text not null references api_key_trust (id) on delete cascade,
  issuer text not null,
  -- What the ID token said about the job.
  repository text,
  ref text,
  run text,
  expires_at timestamptz not null
);
create index exchanged_tokens_by_rule on exchanged_tokens (rule_id);
create index exchanged_tokens_by_expiry on exchanged_tokens (expires_at);

-- ID tokens that were exchanged once and must not be again. A row stays until no rule would accept its token any more.
create table used_id_tokens (
  issuer text not null,
  jti text not null,
  expires_at timestamptz not null,
  primary key (issuer, jti)
);
create index used_id_tokens_by_expiry on used_id_tokens (expires_at);

-- One event counts many refusals of a minute; its details list the last requests that it counts.
create index audit_events_by_counted_exchange on audit_events using gin ((details -> 'requestIds'))
  where event = 'api_key.exchange_refused';
