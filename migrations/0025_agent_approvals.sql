-- Calls of agents that wait for the person. Each lives ten minutes and is good once.
create table agent_approvals (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  client_id text not null,
  tool text not null,
  -- A MAC over the person, the client, the tool, the arguments, and the target with its version.
  digest text not null,
  -- Encrypted; null once the person decided.
  arguments text,
  -- waiting, approved, refused or used.
  status text not null,
  requested_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);
create index agent_approvals_of_user on agent_approvals (user_id, client_id);
create index agent_approvals_end on agent_approvals (expires_at);

-- The approval that a call requested or used.
alter table agent_calls add column approval_id text;

-- A definition gives each tool a rule, as the MCP policy does.
update agent_definitions
   set tools = (select coalesce(jsonb_object_agg(listed.tool, 'allow'), '{}') from jsonb_array_elements_text(tools) as listed (tool))
 where jsonb_typeof(tools) = 'array';
