-- The consent under which the agent asked. Its approvals end with it. Null: from before this column.
alter table agent_approvals add column grant_id text;
