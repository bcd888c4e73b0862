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
  expires_at timestamptz not null
);
create index passkey_challenges_by_expiry on passkey_challenges (expires_at);

-- SHA-256 of 80 random bits each. A used code stays, so that the person sees how many are left.
create table recovery_codes (
  subject text not null references accounts (subject) on delete cascade,
  digest text not null,
  created_at timestamptz not null,
  used_at timestamptz,
  primary key (subject, digest)
);
