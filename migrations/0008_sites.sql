-- Sites: uploaded static sites, their labels and versions, and what each owner keeps in the blob store.

create table sites (
  id text primary key,
  name text not null,
  -- An immutable subject of ours, or exactly one key; never an e-mail address (threat T48).
  owner_kind text not null check (owner_kind in ('user', 'service_key')),
  owner_id text not null,
  visibility text not null check (visibility in ('public', 'private')),
  -- In front of the content host. A change of visibility mints a new one (contract 10.6).
  label text not null unique,
  spa boolean not null,
  -- Null: nothing was published yet.
  live_version int,
  next_version int not null default 1,
  -- Counts what ends browser grants; a grant carries the number it was made under (private-access 2.2, step 6).
  epoch bigint not null default 1,
  -- Counts every change of the row: of two records in the key-value store the newer wins (contract 10.3).
  revision bigint not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz,
  deleted_at timestamptz,
  restorable_until timestamptz,
  taken_down_at timestamptz,
  taken_down_by text,
  take_down_reason text,
  -- Set when the job has written the expiry event, so that it is written once.
  expiry_recorded_at timestamptz,
  check (owner_kind = 'user' or visibility = 'public')
);
create index sites_by_owner on sites (owner_kind, owner_id, created_at desc, id);
create index sites_public on sites (created_at desc, id) where visibility = 'public' and deleted_at is null;
create index sites_names on sites (lower(name) text_pattern_ops);
create index sites_to_expire on sites (expires_at) where expires_at is not null and deleted_at is null and expiry_recorded_at is null;
create index sites_to_purge on sites (restorable_until) where deleted_at is not null;

-- Every label ever given out. A label is never used twice, also after its site is gone, so no foreign key.
create table site_labels (
  label text primary key,
  site_id text not null,
  -- Null: the site's address. Otherwise the preview of this version, until ends_at.
  version int,
  minted_at timestamptz not null,
  ends_at timestamptz,
  retired_at timestamptz
);
create index site_labels_by_site on site_labels (site_id, minted_at);

create table site_versions (
  site_id text not null references sites (id) on delete cascade,
  number int not null,
  -- The publish receipt: SHA-256 over digest and path of every file.
  digest text not null,
  -- [[path, digest, size], …] in code point order of the paths.
  manifest jsonb not null,
  file_count int not null,
  size_bytes bigint not null,
  created_at timestamptz not null,
  created_by text,
  published_at timestamptz not null,
  -- When it stopped being the live one; hashed files stay reachable for a while after (skew grace).
  replaced_at timestamptz,
  -- Set when its compressed forms are made.
  encoded_at timestamptz,
  primary key (site_id, number)
);
create index site_versions_to_encode on site_versions (published_at) where encoded_at is null;

-- Which owner keeps which bytes, and in how many runs: unbroken rows of a site's kept versions that hold them. A publish
-- so costs what it changes, not what the site holds. A digest is looked up here within one owner only: that
-- somebody else has it must never show (threat T50).
create table owner_blobs (
  owner_kind text not null,
  owner_id text not null,
  digest text not null,
  size bigint not null,
  runs int not null,
  primary key (owner_kind, owner_id, digest)
);
create index owner_blobs_by_digest on owner_blobs (digest);

-- Compressed forms of a blob, kept in the blob store under digests of their own.
create table blob_variants (
  digest text not null,
  encoding text not null check (encoding in ('br', 'zstd', 'gzip')),
  stored text not null,
  size bigint not null,
  primary key (digest, encoding)
);
create index blob_variants_by_stored on blob_variants (stored);

-- Digests whose bytes are about to be removed. A publish that meets one of its own here is tried again later.
create table blob_removals (
  digest text primary key,
  decided_at timestamptz not null
);

-- A digest upload under way (contract 6): what the new version will hold and which bytes have come.
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
create index site_uploads_by_end on site_uploads (ends_at);

create table site_upload_blobs (
  upload_id text not null references site_uploads (id) on delete cascade,
  digest text not null,
  size bigint not null,
  received_at timestamptz,
  primary key (upload_id, digest)
);
create index site_upload_blobs_by_digest on site_upload_blobs (digest);

-- Counts how often Sites was switched off: grants of before stay dead after it is switched on (contract 6).
create table sites_switch (
  only_row boolean primary key default true check (only_row),
  generation bigint not null
);
insert into sites_switch (generation) values (1);

-- Every browser grant that was issued, for its owner to read. Never the grant's secret.
create table site_grants (
  id text primary key,
  site_id text not null references sites (id) on delete cascade,
  user_id text not null,
  epoch bigint not null,
  issued_at timestamptz not null,
  ends_at timestamptz not null,
  address text,
  agent text
);
create index site_grants_by_site on site_grants (site_id, issued_at desc);
create index site_grants_by_end on site_grants (ends_at);
