-- What every feature stands on: the change feed and the leases of periodic jobs.

-- A row per committed change that other processes must hear of within a second. `tx` orders readers by
-- transaction visibility instead of by sequence number, so a row that commits late is never skipped.
create table changes (
  seq bigint generated always as identity primary key,
  tx xid8 not null default pg_current_xact_id(),
  topic text not null,
  subject text not null,
  at timestamptz not null
);
create index changes_by_tx on changes (tx);
create index changes_by_time on changes (at);

create table job_leases (
  job text primary key,
  holder text not null,
  held_until timestamptz not null,
  last_run_at timestamptz
);
