-- All that a gateway on its own may see (contract 10.13). The names are those of the tables, so that it asks in the same words
-- with this schema as its search path. Its role gets the schema and nothing else: no sessions, no key digests, no audit. Where rows are
-- left out, security_barrier keeps functions of the reader from seeing them first.
create schema gateway;
create view gateway.changes with (security_barrier) as select seq, tx, topic, subject from changes where topic in ('site', 'config');
create view gateway.config_documents with (security_barrier) as
  select name, version, value, changed_at, null::text as changed_by from config_documents where name = 'sites';
create view gateway.sites as
  select id, name, owner_kind, owner_id, visibility, label, spa, live_version, epoch, revision, created_at, updated_at,
         expires_at, deleted_at, restorable_until, taken_down_at, take_down_reason from sites;
create view gateway.site_labels as select label, site_id, version, minted_at, ends_at, retired_at from site_labels;
create view gateway.site_versions as
  select site_id, number, digest, manifest, file_count, size_bytes, created_at, null::text as created_by, published_at,
         replaced_at, encoded_at from site_versions;
create view gateway.blob_variants as select digest, encoding, stored, size from blob_variants;
