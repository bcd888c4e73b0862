-- A gateway serves a site by its label, state and epoch. Whose it is, how it is called and why it was taken down it does not ask, so
-- whoever gets hold of its role does not read it either (contract 10.13). The columns stay, because the names are those of the table.
create or replace view gateway.sites as
  select id, ''::text as name, ''::text as owner_kind, ''::text as owner_id, visibility, label, spa, live_version, epoch, revision,
         created_at, updated_at, expires_at, deleted_at, restorable_until, taken_down_at, null::text as take_down_reason from sites;
