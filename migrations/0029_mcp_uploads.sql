-- Addresses to which agents upload the files of a site. Each lives ten minutes and is good once.
create table mcp_uploads (
  -- The public part of its token.
  id text primary key,
  -- SHA-256. The token itself is stored nowhere.
  token_hash text not null,
  user_id text not null references users (id) on delete cascade,
  client_id text not null,
  grant_id text not null,
  -- The approval of the call that requested it; null: the call needed none.
  approval_id text,
  -- Null: a new site.
  site_id text,
  name text,
  visibility text not null,
  spa boolean,
  -- The live version that it replaces, by its receipt. Null: the site has none.
  replaces text,
  -- What must arrive, as one receipt, and its size.
  receipt text not null,
  file_count int not null,
  size_bytes bigint not null,
  expires_at timestamptz(3) not null,
  used_at timestamptz(3)
);
create index mcp_uploads_end on mcp_uploads (expires_at);

-- upload_offered or upload_received, of a call that did not publish by itself.
alter table agent_calls add column step text;

-- Of a call that changed something: the request that its audit events name.
alter table agent_calls add column request_id text;
