-- Tickets with which pods fetch and send archives. A row stays until its build or its Environment has ended.
create table environment_tickets (
  -- SHA-256 of the ticket, which itself is not stored.
  digest text primary key,
  kind text not null constraint environment_tickets_kind_check check (kind in ('source', 'output', 'tree')),
  -- Of a source and an output. No foreign keys: a ticket is refused once it is withdrawn, whatever else is there.
  build_id text,
  -- Of a tree.
  environment_id text,
  -- The archive to fetch, or the one that was sent.
  tar_digest text,
  -- Of an output that was sent.
  tar_bytes bigint,
  file_count int,
  size_bytes bigint,
  created_at timestamptz not null,
  -- Of a source and an output, which are used once.
  used_at timestamptz,
  constraint environment_tickets_owner_check check ((kind = 'tree') = (build_id is null) and (kind = 'tree') = (environment_id is not null))
);
create unique index environment_tickets_by_build on environment_tickets (build_id, kind) where build_id is not null;
create index environment_tickets_by_environment on environment_tickets (environment_id) where environment_id is not null;
-- Which contents a source archive still needs.
create index environment_tickets_by_source on environment_tickets (tar_digest) where kind = 'source' and used_at is null;
