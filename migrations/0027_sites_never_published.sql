-- Sites that wait for their first version, so that clean-up finds those that nobody publishes to any more.
create index sites_never_published on sites (updated_at) where live_version is null and deleted_at is null;
