-- What the agents of a definition reach. The defaults change nothing for definitions that exist.
alter table agent_definitions
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
