-- Where a key was used from last: a network, never a whole address, and the program. Written with the time, off the request path.
alter table api_key_last_used add column network text;
alter table api_key_last_used add column program text;
