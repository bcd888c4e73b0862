-- What a session says about its sign-in. Null: an older release began the session, or the provider did not say.
alter table browser_sessions
  add column authenticated_at timestamptz,
  add column methods text[],
  add column address text,
  add column agent text;
