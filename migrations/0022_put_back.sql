-- What was replaced while a site was taken down stays out of reach when the site is put back.
alter table sites add column put_back_at timestamptz;
create or replace view gateway.sites as
  select id, ''::text as name, ''::text as owner_kind, ''::text as owner_id, visibility, label, spa, live_version, epoch, revision,
         created_at, updated_at, expires_at, deleted_at, restorable_until, taken_down_at, null::text as take_down_reason,
         put_back_at from sites;
