-- Who people are: users as this service knows them, the accounts, groups and protocol records of the built-in provider, and
-- browser sessions. Secrets are stored hashed, or encrypted with ENCRYPTION_KEY (columns named `sealed`).

-- A user is identified by (issuer, subject). Name and e-mail address are what the provider sent last.
create table users (
  id text primary key,
  issuer text not null,
  subject text not null,
  name text not null,
  email text,
  created_at timestamptz not null,
  -- When the identity provider first confirmed that this person exists. Only such a user can later count as deleted: an
  -- imported key may name a subject that never existed.
  found_at timestamptz,
  last_login_at timestamptz,
  unique (issuer, subject)
);
create index users_by_name on users (lower(name), id);

-- Accounts of the built-in provider. `subject` is the OpenID Connect `sub`.
create table accounts (
  subject text primary key,
  user_id text not null unique references users (id),
  email text not null,
  name text not null,
  password_hash text not null,
  enabled boolean not null,
  roles jsonb not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- The last sign-out everywhere: by a new password, by an administrator, or because the account was disabled. Anything
  -- proved before it, such as a sign-in that is not finished, no longer counts.
  signed_out_at timestamptz
);
-- In the collation "C", as accounts/email.ts does it: only A to Z have a lower case, whatever the locale of the database.
create unique index accounts_by_canonical_email on accounts (lower(email collate "C"));

-- Deleted accounts. Without them, a subject that never had an account here (the owner of an imported key) would look like
-- one whose account was deleted.
create table account_tombstones (
  subject text primary key,
  deleted_at timestamptz not null
);

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

-- Records of the library oidc-provider. Its id of a record is the token itself, so only the hash is stored.
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

-- The signing keys of the built-in provider: one encrypted JSON Web Key Set.
create table provider_signing_keys (
  id integer primary key constraint provider_signing_keys_id_check check (id = 1),
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

-- One row for each sign-in that was started (contract 10.11), bound to the browser's attempt cookie and used once.
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
