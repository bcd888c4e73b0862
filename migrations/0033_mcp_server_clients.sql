-- How the operator of an external MCP server knows Postern, when its authorization server registers no clients.
alter table mcp_servers
  add column client_id text,
  -- Encrypted. Null: a public client.
  add column client_secret text;
