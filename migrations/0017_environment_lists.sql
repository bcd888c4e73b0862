-- Lists and sweeps read the Environments that live, however many rows of others are kept, and the deploys of one status.
create index environments_living on environments (created_at desc, id) where status <> 'torn_down';
-- Also those that were torn down, which environments_by_creator left out.
create index environments_of_creator on environments (creator_kind, creator_id, created_at desc, id);
drop index environments_by_creator;
create index deploys_by_status on deploys (status, seq desc);
