-- What a session says about its sign-in. Null: an older release began the session, or the provider did not say.
alter table browser_sessions
  add column authenticated_at timestamptz,
  add column methods text[],
  add column address text,
  add column agent text,
  -- The identity provider's session behind it (the claim `sid`). Null: the provider did not say.
  add column provider_session text;

-- Sessions of the identity provider that a person or an administrator ended here. A sign-in that was proved before the end
-- no longer counts, whatever the provider still thinks of it.
create table ended_provider_sessions (
  id text primary key,
  ended_at timestamptz not null
);
create index ended_provider_sessions_by_end on ended_provider_sessions (ended_at);
