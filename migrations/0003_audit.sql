-- The audit log (contract 9 and 10.8). An event commits with the change that it records; a job adds it to the chain afterwards.

create table audit_events (
  -- The order of insertion. Gaps are normal: a transaction that rolled back used a number.
  seq bigint generated always as identity primary key,
  id text not null unique,
  -- In milliseconds, like every time in the API: the hash must cover exactly what the column can store.
  at timestamptz(3) not null,
  event text not null,
  actor_kind text not null,
  actor_id text,
  actor_name text,
  credential text,
  target_kind text not null,
  target_id text not null,
  outcome text not null constraint audit_events_outcome_check check (outcome in ('success', 'denied', 'failure')),
  reason text,
  request_id text,
  address text,
  agent text,
  details jsonb not null,
  key_ids text[] not null
);

-- One index for each filter. Each ends in the order of the response, so that a page costs the same at any size.
create index audit_events_by_time on audit_events (at, seq);
create index audit_events_by_actor on audit_events (coalesce(actor_id, actor_kind), at, seq);
create index audit_events_by_event on audit_events (event, at, seq);
create index audit_events_by_target on audit_events (target_id, at, seq);
create index audit_events_by_outcome on audit_events (outcome, at, seq);
create index audit_events_by_request on audit_events (request_id, at, seq) where request_id is not null;
-- One event counts many refusals of a minute; its details list the last requests that it counts.
create index audit_events_by_counted_request on audit_events using gin ((details -> 'requestIds'))
  where event = 'auth.denied';

-- The reverse of audit_events.key_ids: the timeline of one key.
create table audit_event_keys (
  key_id text not null,
  at timestamptz(3) not null,
  seq bigint not null,
  primary key (key_id, at, seq)
);

-- The chain: one row for each chained event, without gaps from 1. No foreign key: it would lock, and so rewrite, each event.
create table audit_seals (
  seq bigint primary key constraint audit_seals_seq_check check (seq > 0),
  event_id text not null unique,
  previous_hash bytea not null constraint audit_seals_previous_hash_check check (length(previous_hash) = 32),
  hash bytea not null constraint audit_seals_hash_check check (length(hash) = 32),
  sealed_at timestamptz(3) not null
);

-- Events that are not in the chain yet, inserted with the event (decision 0006). A queue finds a transaction that commits
-- late like any other, also after a dump was restored on another server; a highest number would not.
create table audit_unsealed (
  event_seq bigint primary key
);

-- Events by hour, kind and outcome. Only the job that extends the chain counts: counting inside each change would make all
-- changes wait for each other.
create table audit_counts (
  hour timestamptz not null,
  event text not null,
  outcome text not null,
  count bigint not null,
  primary key (hour, event, outcome)
);

create function refuse_audit_change() returns trigger language plpgsql as $$
begin
  raise exception 'The audit trail is append-only: % on % is refused.', tg_op, tg_table_name
    using errcode = 'insufficient_privilege';
end $$;

create trigger append_only before update or delete or truncate on audit_events
  for each statement execute function refuse_audit_change();
create trigger append_only before update or delete or truncate on audit_event_keys
  for each statement execute function refuse_audit_change();
create trigger append_only before update or delete or truncate on audit_seals
  for each statement execute function refuse_audit_change();
-- "always": a session with session_replication_role = replica skips ordinary triggers.
alter table audit_events enable always trigger append_only;
alter table audit_event_keys enable always trigger append_only;
alter table audit_seals enable always trigger append_only;
