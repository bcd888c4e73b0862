-- What every feature uses: the change feed between processes, and the leases of periodic jobs.

-- One row for each committed change that other processes must learn within a second. Readers order rows by the visibility of
-- their transaction (`tx`), not by `seq`: a row that commits late would otherwise be skipped.
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
