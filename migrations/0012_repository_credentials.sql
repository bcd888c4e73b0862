-- How Postern signs in to the git server of a repository. One credential each, encrypted under ENCRYPTION_KEY.
create table repository_credentials (
  repository_id text primary key references repositories (id) on delete cascade,
  kind text not null check (kind in ('token', 'ssh_key')),
  -- Scheme, host and port of the clone URL for which it was given. It is sent nowhere else.
  origin text not null,
  encrypted text not null,
  set_at timestamptz(3) not null
);
