-- What agents of people did at the MCP endpoint. A session is the calls of one grant and client, until 30 idle minutes end it.
create table agent_sessions (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  client_id text not null,
  -- Names the consent of the person; empty when the identity provider names none.
  grant_id text not null,
  started_at timestamptz(3) not null,
  last_call_at timestamptz(3) not null,
  calls int not null
);
create index agent_sessions_newest on agent_sessions (last_call_at desc, id);
create index agent_sessions_of_user on agent_sessions (user_id, last_call_at desc, id);

create table agent_calls (
  session_id text not null references agent_sessions (id) on delete cascade,
  -- Counts from 1 in each session.
  number int not null,
  at timestamptz(3) not null,
  tool text not null,
  -- Null: the tool answered. Otherwise the code of its refusal.
  code text,
  duration_ms int not null,
  -- Values that nobody may read are replaced by their sizes before they come here.
  arguments jsonb not null,
  primary key (session_id, number)
);
