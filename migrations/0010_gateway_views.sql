-- Everything that a gateway of its own may read (contract 10.13): its database role has this schema and nothing else, so no
-- sessions, no key digests and no audit log. The views have the names and columns of the tables, and with this schema as its
-- search path a gateway sends the same queries. A column that serving does not need is empty, such as the owner, the name and
-- the reason of a take-down.
create schema gateway;

-- security_barrier: a function in the reader's query must not see a row before the filter.
create view gateway.changes with (security_barrier) as
  select seq, tx, topic, subject from changes where topic in ('site', 'config');
create view gateway.config_documents with (security_barrier) as
  select name, version, value, changed_at, null::text as changed_by from config_documents where name = 'sites';

create view gateway.sites as
  select id, ''::text as name, ''::text as owner_kind, ''::text as owner_id, visibility, label, spa, live_version, epoch, revision,
         created_at, updated_at, expires_at, deleted_at, restorable_until, taken_down_at, null::text as take_down_reason,
         put_back_at from sites;
create view gateway.site_labels as select label, site_id, version, minted_at, ends_at, retired_at from site_labels;
create view gateway.site_versions as
  select site_id, number, digest, manifest, file_count, size_bytes, created_at, null::text as created_by, published_at,
         replaced_at, encoded_at from site_versions;
create view gateway.blob_variants as select digest, encoding, stored, size from blob_variants;
