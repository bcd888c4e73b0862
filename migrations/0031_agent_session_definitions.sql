-- The agent definition of the newest call, as it was named then; null: there was none.
alter table agent_sessions add column definition_id text, add column definition_name text;
