-- The site or Environment that a call created or published, where its arguments do not name one.
alter table agent_calls add column object_id text;
