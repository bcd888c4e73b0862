-- Lists of sites in the order of their name, last publish, end or size.

-- What of the live version lists are ordered by. Kept by the database, so that a process of the version before keeps it too.
alter table sites
  add column live_size_bytes bigint not null default 0,
  add column live_published_at timestamptz;
update sites s set live_size_bytes = v.size_bytes, live_published_at = v.published_at
  from site_versions v where v.site_id = s.id and v.number = s.live_version;
create function keep_live_of_site() returns trigger language plpgsql as $$
begin
  select v.size_bytes, v.published_at into new.live_size_bytes, new.live_published_at
    from site_versions v where v.site_id = new.id and v.number = new.live_version;
  return new;
end $$;
create trigger sites_live_kept before update of live_version on sites
  for each row when (new.live_version is not null) execute function keep_live_of_site();

-- Of the sites of everybody. One's own are as few as the quota says, and are put in order when they are asked for.
create index sites_public_by_name on sites (lower(name) desc, id) where visibility = 'public' and deleted_at is null;
create index sites_public_by_publish on sites (coalesce(live_published_at, '-infinity'::timestamptz) desc, id)
  where visibility = 'public' and deleted_at is null;
create index sites_public_by_end on sites (coalesce(expires_at, 'infinity'::timestamptz) desc, id)
  where visibility = 'public' and deleted_at is null;
create index sites_public_by_size on sites (live_size_bytes desc, id) where visibility = 'public' and deleted_at is null;
