-- Who people are: users as this service knows them, the built-in provider's accounts and groups, its protocol
-- records, and browser sessions. Secrets are hashed (found by digest) or sealed with ENCRYPTION_KEY, never plain.

-- Identity is (issuer, subject) only; name and e-mail are what the provider last said (ID-15).
create table users (
  id text primary key,
  issuer text not null,
  subject text not null,
  name text not null,
  email text,
  created_at timestamptz not null,
  last_login_at timestamptz,
  unique (issuer, subject)
);

-- The built-in provider's people. `subject` is the OIDC `sub`.
create table accounts (
  subject text primary key,
  user_id text not null unique references users (id),
  email text not null,
  name text not null,
  password_hash text not null,
  enabled boolean not null,
  roles jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index accounts_by_email on accounts (lower(email));

create table account_groups (
  id text primary key,
  name text not null,
  parent_id text references account_groups (id),
  roles jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index account_groups_by_name on account_groups (lower(name));
create index account_groups_by_parent on account_groups (parent_id);

create table account_group_members (
  group_id text not null references account_groups (id) on delete cascade,
  subject text not null references accounts (subject) on delete cascade,
  primary key (group_id, subject)
);
create index account_group_members_by_subject on account_group_members (subject);

-- oidc-provider's records. The id is the token itself, so only its hash is kept and the payload is sealed.
create table oidc_records (
  model text not null,
  id_hash text not null,
  payload text not null,
  grant_id text,
  uid text,
  user_code_hash text,
  account_id text,
  client_id text,
  created_at timestamptz not null,
  consumed_at timestamptz,
  expires_at timestamptz,
  primary key (model, id_hash)
);
create index oidc_records_by_grant on oidc_records (grant_id) where grant_id is not null;
create index oidc_records_by_account on oidc_records (account_id) where account_id is not null;
create index oidc_records_by_uid on oidc_records (model, uid) where uid is not null;
create unique index oidc_records_by_user_code on oidc_records (model, user_code_hash) where user_code_hash is not null;
create index oidc_records_by_expiry on oidc_records (expires_at);

-- The provider's signing keys: one sealed JSON Web Key Set.
create table provider_signing_keys (
  id integer primary key check (id = 1),
  sealed text not null,
  created_at timestamptz not null
);

-- One-time links for the first administrator that were used.
create table setup_links_used (
  digest text primary key,
  used_at timestamptz not null
);

create table browser_sessions (
  id text primary key,
  digest text not null unique,
  user_id text not null references users (id) on delete cascade,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null,
  tokens_sealed text not null,
  access_expires_at timestamptz not null,
  refresh_holder text,
  refresh_until timestamptz,
  ended_at timestamptz
);
create index browser_sessions_by_user on browser_sessions (user_id) where ended_at is null;
create index browser_sessions_by_expiry on browser_sessions (expires_at);

-- One row per started sign-in (contract 10.11), bound to the browser's attempt cookie, used once.
create table login_attempts (
  state_hash text primary key,
  browser_hash text not null,
  sealed text not null,
  return_to text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index login_attempts_by_browser on login_attempts (browser_hash, created_at);
create index login_attempts_by_expiry on login_attempts (expires_at);
