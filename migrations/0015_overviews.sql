-- What administrators look at as a whole, kept as sums: adding up a million rows for every look costs more than the look.

-- Events of the trail by hour, kind and outcome, counted by the sealer, which is one at a time: counting inside the
-- change itself would make every change wait for every other.
create table audit_counts (
  hour timestamptz not null,
  event text not null,
  outcome text not null,
  count bigint not null,
  primary key (hour, event, outcome)
);
insert into audit_counts (hour, event, outcome, count)
select date_bin('1 hour', e.at, timestamptz '2000-01-01 00:00:00+00'), e.event, e.outcome, count(*)
  from audit_events e join audit_seals s on s.event_id = e.id
 group by 1, 2, 3;

-- Requests of all keys together; api_key_usage summed over the keys.
create table api_key_usage_totals (
  per text not null check (per in ('minute', 'hour', 'day')),
  bucket timestamptz not null,
  outcome text not null check (outcome in ('allowed', 'denied', 'limited', 'failed', 'dead')),
  count bigint not null,
  primary key (per, bucket, outcome)
);
insert into api_key_usage_totals (per, bucket, outcome, count)
select per, bucket, outcome, sum(count) from api_key_usage group by per, bucket, outcome;

-- Bytes each owner keeps, every content once; owner_blobs summed by owner. One statement of a publish adds thousands of
-- rows, so the triggers look at statements, not at rows.
create table owner_storage (
  owner_kind text not null,
  owner_id text not null,
  bytes bigint not null,
  primary key (owner_kind, owner_id)
);
create index owner_storage_by_bytes on owner_storage (bytes desc, owner_kind, owner_id);
insert into owner_storage (owner_kind, owner_id, bytes)
select owner_kind, owner_id, sum(size) from owner_blobs group by owner_kind, owner_id;

create function add_owner_storage() returns trigger language plpgsql as $$
begin
  insert into owner_storage (owner_kind, owner_id, bytes)
  select owner_kind, owner_id, sum(size) from added group by owner_kind, owner_id
  on conflict (owner_kind, owner_id) do update set bytes = owner_storage.bytes + excluded.bytes;
  return null;
end $$;
create function take_owner_storage() returns trigger language plpgsql as $$
begin
  update owner_storage s set bytes = s.bytes - gone.bytes
    from (select owner_kind, owner_id, sum(size) as bytes from removed group by owner_kind, owner_id) gone
   where s.owner_kind = gone.owner_kind and s.owner_id = gone.owner_id;
  return null;
end $$;
create trigger owner_blobs_added after insert on owner_blobs
  referencing new table as added for each statement execute function add_owner_storage();
create trigger owner_blobs_removed after delete on owner_blobs
  referencing old table as removed for each statement execute function take_owner_storage();

-- Sites an administrator stopped, to be found again without their names.
create index sites_taken_down on sites (taken_down_at desc, id) where taken_down_at is not null;
