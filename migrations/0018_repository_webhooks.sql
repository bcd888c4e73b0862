-- The secret with which the git server of a repository signs its webhooks. One each, encrypted under ENCRYPTION_KEY.
create table repository_webhooks (
  repository_id text primary key references repositories (id) on delete cascade,
  encrypted text not null,
  set_at timestamptz(3) not null
);
