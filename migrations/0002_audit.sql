-- The audit trail (contract 9 and 10.8). Events commit with the change they tell of; a sealer chains them afterwards.

create table audit_events (
  -- The order of insertion. Gaps are normal: a transaction that rolled back used a number.
  seq bigint generated always as identity primary key,
  id text not null unique,
  -- Milliseconds, like every time on the wire: what the hash covers is what the column can hold.
  at timestamptz(3) not null,
  event text not null,
  actor_kind text not null,
  actor_id text,
  actor_name text,
  credential text,
  target_kind text not null,
  target_id text not null,
  outcome text not null check (outcome in ('success', 'denied', 'failure')),
  reason text,
  request_id text,
  address text,
  agent text,
  details jsonb not null,
  key_ids text[] not null
);

-- One index a filter, each ending in the order of the answer, so that a page costs the same at any size.
create index audit_events_by_time on audit_events (at, seq);
create index audit_events_by_actor on audit_events (coalesce(actor_id, actor_kind), at, seq);
create index audit_events_by_event on audit_events (event, at, seq);
create index audit_events_by_target on audit_events (target_id, at, seq);
create index audit_events_by_outcome on audit_events (outcome, at, seq);
create index audit_events_by_request on audit_events (request_id, at, seq) where request_id is not null;

-- audit_events.key_ids turned round: the timeline of one key.
create table audit_event_keys (
  key_id text not null,
  at timestamptz(3) not null,
  seq bigint not null,
  primary key (key_id, at, seq)
);

-- The chain: one row a sealed event, without gaps from 1. No foreign key: it would lock, and so rewrite, every event.
create table audit_seals (
  seq bigint primary key check (seq > 0),
  event_id text not null unique,
  previous_hash bytea not null check (length(previous_hash) = 32),
  hash bytea not null check (length(hash) = 32),
  sealed_at timestamptz(3) not null
);

-- Events that wait for the sealer; written with the event, removed with its seal. A queue instead of a watermark:
-- a transaction that commits late is found like any other, also after a dump was restored in another cluster.
create table audit_unsealed (
  event_seq bigint primary key
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
-- "always": also for a session that calls itself a replica, which skips ordinary triggers.
alter table audit_events enable always trigger append_only;
alter table audit_event_keys enable always trigger append_only;
alter table audit_seals enable always trigger append_only;
