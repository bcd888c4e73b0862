-- Passkeys of the accounts of the built-in identity provider (WebAuthn Level 3).
create table passkeys (
  id text primary key,
  subject text not null references accounts (subject) on delete cascade,
  -- Base64url, as the authenticator sends it.
  credential_id text not null unique,
  -- COSE_Key (RFC 9052 section 7).
  public_key bytea not null,
  -- The highest signature counter that was seen; 0 = the authenticator has none.
  counter bigint not null,
  transports text[] not null,
  name text not null,
  is_synced boolean not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkeys_by_subject on passkeys (subject);

-- 32 random bytes for each account that created passkeys: an authenticator shows them to whoever holds it.
create table passkey_handles (
  subject text primary key references accounts (subject) on delete cascade,
  handle text not null unique
);

-- Each is used once, within five minutes, in the session or the sign-in that asked for it.
create table passkey_challenges (
  digest text primary key,
  bound_to text not null,
  -- The account of a registration. Null: a sign-in, which names no account.
  subject text references accounts (subject) on delete cascade,
  expires_at timestamptz not null
);
create index passkey_challenges_by_binding on passkey_challenges (bound_to);
create index passkey_challenges_by_subject on passkey_challenges (subject);
create index passkey_challenges_by_expiry on passkey_challenges (expires_at);

-- SHA-256 of 80 random bits each. A used code stays, so that the person sees how many are left.
create table recovery_codes (
  subject text not null references accounts (subject) on delete cascade,
  digest text not null,
  created_at timestamptz not null,
  used_at timestamptz,
  primary key (subject, digest)
);

-- Notices about passkeys. Their subject is the id of the user.
alter table notices drop constraint notices_kind_check;
alter table notices add constraint notices_kind_check check (kind in (
  'key_expires_7d', 'key_expires_1d', 'key_expired', 'key_exposed', 'key_dead_use', 'key_suspended',
  'site_expires_7d', 'site_expires_1d', 'site_expired', 'site_taken_down', 'site_put_back',
  'environment_expires_1d', 'environment_expires_1h', 'environment_expired', 'environment_deploy_failed',
  'passkey_added', 'passkey_removed', 'passkey_copied', 'passkeys_reset', 'recovery_code_used'));
