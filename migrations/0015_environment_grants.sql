-- Browser grants of Environments, so that a person who is disabled or signed out loses them at once. Only until they end.
create table environment_grants (
  id text primary key,
  -- The name of the grant in the key-value store, which gives no access by itself.
  store_key text not null,
  environment_id text not null,
  user_id text not null,
  session_id text not null,
  ends_at timestamptz not null
);
create index environment_grants_by_user on environment_grants (user_id);
create index environment_grants_by_session on environment_grants (session_id);
create index environment_grants_to_prune on environment_grants (ends_at);
