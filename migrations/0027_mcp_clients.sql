-- MCP clients that registered themselves, and those about which an administrator decided.
create table mcp_clients (
  client_id text primary key,
  -- What the client calls itself; nobody checked it.
  name text not null,
  redirect_hosts jsonb not null,
  -- allowed, waiting or blocked.
  status text not null,
  -- Null: it did not register itself.
  registered_at timestamptz(3),
  -- When a person first allowed it something.
  confirmed_at timestamptz(3)
);
