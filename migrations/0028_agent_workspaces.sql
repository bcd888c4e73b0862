-- What the agents of a definition reach. The defaults change nothing for definitions that exist.
alter table agent_definitions
  -- People may choose it for their clients.
  add column is_offered boolean not null default false,
  -- One of the configuration document agent-models; null: none.
  add column model text,
  -- SHA-256 of the default that its instructions were written against; null: none, or they are older than the default.
  add column instructions_default text,
  -- all or selected.
  add column repository_mode text not null default 'all',
  -- Null: as many as the Environment policy allows.
  add column max_environments int,
  -- Null: as long as the Environment policy allows.
  add column environment_ttl_hours int,
  -- none, read or publish.
  add column may_sites text not null default 'publish';

-- By id, so that a renamed repository stays the same. Read only while repository_mode is selected.
create table agent_definition_repositories (
  definition_id text not null references agent_definitions (id) on delete cascade,
  repository_id text not null references repositories (id) on delete cascade,
  primary key (definition_id, repository_id)
);

-- The definition under which an agent created it; null: no agent did. Counted for max_environments.
alter table environments add column agent_definition_id text;

-- The definition that a person chose for one consent of a client. Issuer and subject, because a person may allow a client
-- something before Postern knows them.
create table agent_grant_definitions (
  issuer text not null,
  subject text not null,
  client_id text not null,
  grant_id text not null,
  definition_id text not null references agent_definitions (id) on delete cascade,
  chosen_at timestamptz(3) not null,
  primary key (issuer, subject, client_id, grant_id)
);
create index agent_grant_definitions_of on agent_grant_definitions (definition_id);
create index agent_grant_definitions_oldest on agent_grant_definitions (chosen_at);
