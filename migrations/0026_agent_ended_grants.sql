-- Consents of people whose agents lost their access: no token of them opens /mcp again, whoever issued it.
create table agent_ended_grants (
  user_id text not null references users (id) on delete cascade,
  client_id text not null,
  grant_id text not null,
  ended_at timestamptz(3) not null,
  primary key (user_id, client_id, grant_id)
);
