-- MCP servers of others. People connect their own accounts there, and their agents get the accepted tools at /mcp.
create table mcp_servers (
  slug text primary key,
  name text not null,
  url text not null,
  auth text not null check (auth in ('none', 'header', 'oauth')),
  -- Rules, by the names that the server gives its tools.
  tools jsonb not null,
  -- Names of tools that change nothing, as an administrator says.
  read_only_tools jsonb not null,
  enabled boolean not null,
  -- OAuth: the authorization server that was found first. No other one gets a request of a person.
  issuer text,
  -- Another one that the server named since; an administrator decides. Null: none.
  changed_issuer text,
  -- OAuth: how Postern is registered at the issuer. Encrypted.
  registration text
);

create table mcp_server_tools (
  server_slug text not null references mcp_servers (slug) on delete cascade,
  name text not null,
  -- What the server said last, and what an administrator accepted: name, title, description, schemas and annotations as JSON.
  listed text not null,
  listed_digest text not null,
  listed_at timestamptz(3) not null,
  accepted text,
  accepted_digest text,
  primary key (server_slug, name)
);

-- The account of one person at one server.
create table mcp_connections (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  server_slug text not null references mcp_servers (slug) on delete cascade,
  -- connected, or broken: the server refused the credential, and the person must connect again.
  status text not null check (status in ('connected', 'broken')),
  -- The credential, encrypted. Null: the server needs none.
  encrypted text,
  connected_at timestamptz(3) not null,
  last_used_at timestamptz(3),
  -- The process that refreshes the tokens, until this time.
  lease_holder text,
  lease_until timestamptz(3),
  unique (user_id, server_slug)
);
create index mcp_connections_of_server on mcp_connections (server_slug);

-- A sign-in at an authorization server that has begun, for the browser session that began it.
create table mcp_connection_attempts (
  -- A digest of the state.
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  session_id text not null,
  server_slug text not null references mcp_servers (slug) on delete cascade,
  issuer text not null,
  -- The PKCE verifier, and how Postern is registered there. Encrypted.
  encrypted text not null,
  expires_at timestamptz(3) not null
);
create index mcp_connection_attempts_end on mcp_connection_attempts (expires_at);
