-- Static sites, their labels, versions and uploads, and the content that each owner keeps in the blob store.

create table sites (
  id text primary key,
  name text not null,
  -- A subject of ours that never changes, or one key; never an e-mail address (threat T48).
  owner_kind text not null constraint sites_owner_kind_check check (owner_kind in ('user', 'service_key')),
  owner_id text not null,
  visibility text not null constraint sites_visibility_check check (visibility in ('public', 'private')),
  -- The first part of the site's host name. A change of visibility generates a new one (contract 10.6).
  label text not null unique,
  spa boolean not null,
  -- Null: nothing was published yet.
  live_version int,
  -- Copied from the live version by a trigger, for the orders of the list.
  live_size_bytes bigint not null default 0,
  live_published_at timestamptz,
  next_version int not null default 1,
  -- Counts the changes that end browser grants. A grant records the number at its time (private-access 2.2, step 6).
  epoch bigint not null default 1,
  -- Counts every change of the row: of two records in the key-value store, the newer is right (contract 10.3).
  revision bigint not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  deleted_at timestamptz,
  restorable_until timestamptz,
  taken_down_at timestamptz,
  taken_down_by text,
  take_down_reason text,
  -- Files that were replaced while the site was taken down stay unreachable after it is reinstated.
  put_back_at timestamptz,
  -- When the job wrote the expiry event, so that it writes it once.
  expiry_recorded_at timestamptz,
  constraint sites_check check (owner_kind = 'user' or visibility = 'public')
);
create index sites_names on sites (lower(name) text_pattern_ops);
create index sites_to_expire on sites (expires_at)
  where expires_at is not null and deleted_at is null and expiry_recorded_at is null;
create index sites_to_purge on sites (restorable_until) where deleted_at is not null;
create index sites_taken_down on sites (taken_down_at desc, id) where taken_down_at is not null;
-- Sites without a version, for the clean-up of those that nobody publishes to.
create index sites_never_published on sites (updated_at) where live_version is null and deleted_at is null;
-- The sites of one owner are as few as the quota allows, so that a list of them is sorted by each request.
create index sites_by_owner on sites (owner_kind, owner_id, created_at desc, id);
-- The orders of the list of public sites.
create index sites_public on sites (created_at desc, id) where visibility = 'public' and deleted_at is null;
create index sites_public_by_name on sites (lower(name) desc, id) where visibility = 'public' and deleted_at is null;
create index sites_public_by_publish on sites (coalesce(live_published_at, '-infinity'::timestamptz) desc, id)
  where visibility = 'public' and deleted_at is null;
create index sites_public_by_end on sites (coalesce(expires_at, 'infinity'::timestamptz) desc, id)
  where visibility = 'public' and deleted_at is null;
create index sites_public_by_size on sites (live_size_bytes desc, id) where visibility = 'public' and deleted_at is null;

-- Every label that was ever generated. No foreign key: a label is never used again, also after its site is deleted.
create table site_labels (
  label text primary key,
  site_id text not null,
  -- Null: the address of the site. Otherwise the preview of this version, until ends_at.
  version int,
  minted_at timestamptz not null,
  ends_at timestamptz,
  retired_at timestamptz
);
create index site_labels_by_site on site_labels (site_id, minted_at);

create table site_versions (
  site_id text not null references sites (id) on delete cascade,
  number int not null,
  -- The content digest: SHA-256 over digest and path of every file.
  digest text not null,
  -- [[path, digest, size], …] in code point order of the paths. Mostly digests, which do not compress: storage external
  -- saves the attempt.
  manifest jsonb not null,
  file_count int not null,
  size_bytes bigint not null,
  created_at timestamptz not null,
  created_by text,
  published_at timestamptz not null,
  -- When another version became the live one. Files with a hash in their name stay reachable for a while.
  replaced_at timestamptz,
  -- When its compressed variants were stored.
  encoded_at timestamptz,
  primary key (site_id, number)
);
alter table site_versions alter column manifest set storage external;
create index site_versions_to_encode on site_versions (published_at) where encoded_at is null;

create function keep_live_of_site() returns trigger language plpgsql as $$
begin
  select v.size_bytes, v.published_at into new.live_size_bytes, new.live_published_at
    from site_versions v where v.site_id = new.id and v.number = new.live_version;
  return new;
end $$;
create trigger sites_live_kept before update of live_version on sites
  for each row when (new.live_version is not null) execute function keep_live_of_site();

-- A digest upload in progress (contract 6): the files of the new version, and which bytes were received.
create table site_uploads (
  id text primary key,
  site_id text not null references sites (id) on delete cascade,
  spa boolean,
  files jsonb not null,
  created_at timestamptz not null,
  created_by text,
  ends_at timestamptz not null,
  published_at timestamptz
);
alter table site_uploads alter column files set storage external;
create index site_uploads_by_end on site_uploads (ends_at);

create table site_upload_blobs (
  upload_id text not null references site_uploads (id) on delete cascade,
  digest text not null,
  size bigint not null,
  received_at timestamptz,
  primary key (upload_id, digest)
);
create index site_upload_blobs_by_digest on site_upload_blobs (digest);

-- Which content each owner keeps. `runs` counts the unbroken sequences of a site's versions that contain it, so that a publish
-- costs what it changes and not what the site contains. A digest is looked up within one owner only: a client must not learn
-- that another owner has it (threat T50).
create table owner_blobs (
  owner_kind text not null,
  owner_id text not null,
  digest text not null,
  size bigint not null,
  runs int not null,
  primary key (owner_kind, owner_id, digest)
);
create index owner_blobs_by_digest on owner_blobs (digest);

-- The bytes that each owner keeps: owner_blobs summed by owner. One statement of a publish adds thousands of rows, so the
-- triggers run for each statement.
create table owner_storage (
  owner_kind text not null,
  owner_id text not null,
  bytes bigint not null,
  primary key (owner_kind, owner_id)
);
create index owner_storage_by_bytes on owner_storage (bytes desc, owner_kind, owner_id);
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

-- Compressed variants of a blob, kept in the blob store under digests of their own.
create table blob_variants (
  digest text not null,
  encoding text not null constraint blob_variants_encoding_check check (encoding in ('br', 'zstd', 'gzip')),
  stored text not null,
  size bigint not null,
  primary key (digest, encoding)
);
create index blob_variants_by_stored on blob_variants (stored);

-- Digests whose bytes are being removed: a publish that needs one is tried again later. The row stays for a while after the
-- removal, because an upload that began before it may rely on those bytes.
create table blob_removals (
  digest text primary key,
  decided_at timestamptz not null,
  removed_at timestamptz
);
create index blob_removals_by_end on blob_removals (removed_at);
