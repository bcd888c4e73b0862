-- What the agents of people may do besides reading. A client without a definition only reads.
create table agent_definitions (
  id text primary key,
  name text not null unique,
  purpose text not null,
  instructions text not null,
  -- Names of tools.
  tools jsonb not null
);

-- The clients that an administrator gave a definition: each has at most one.
create table agent_definition_clients (
  client_id text primary key,
  definition_id text not null references agent_definitions (id) on delete cascade
);
create index agent_definition_clients_of on agent_definition_clients (definition_id);
