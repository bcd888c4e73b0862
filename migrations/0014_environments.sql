-- Environments: branches of registered repositories, built and running at addresses of their own until their lease ends.

create table environments (
  id text primary key,
  -- Its name, a DNS label. Unique while the Environment lives.
  uuid text not null,
  -- No foreign key: an Environment outlives the registration of its repository until its lease ends.
  repository_id text not null,
  -- Its full name when it was last read, for when it is no longer registered.
  repository text not null,
  branch text not null,
  -- Null: the newest commit of the branch.
  pinned_sha text,
  -- The commit that the newest deploy read.
  sha text,
  creator_kind text not null constraint environments_creator_kind_check check (creator_kind in ('user', 'service_key')),
  creator_id text not null,
  trigger text not null constraint environments_trigger_check check (trigger in ('api', 'push')),
  access text not null constraint environments_access_check check (access in ('owner', 'members', 'public')),
  -- True until the file is read for the first time: then its access counts, because nobody chose one.
  access_open boolean not null default false,
  -- The last part of the host names of its services. A change of access makes a new one.
  label text not null unique,
  -- What its creator chose in place of the file.
  services jsonb not null,
  env jsonb not null,
  init_env jsonb not null,
  ttl_hours int,
  deploy_enabled boolean not null,
  auto_track boolean not null,
  track_default_branches boolean not null,
  status text not null constraint environments_status_check check (status in ('queued', 'building', 'built', 'deploying', 'deployed',
    'error', 'config_error', 'paused', 'asleep', 'tearing_down', 'torn_down')),
  status_message text,
  -- The deploy whose result is served.
  live_deploy_id text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  deleted_at timestamptz,
  -- Counts every change of the row.
  revision bigint not null default 1,
  idempotency_key text,
  -- SHA-256 of the request, to tell a repeated request from another one with the same key.
  request_digest text
);
create unique index environments_names on environments (uuid) where deleted_at is null;
create unique index environments_requests on environments (creator_kind, creator_id, idempotency_key)
  where idempotency_key is not null;
create index environments_by_repository on environments (repository_id, created_at desc, id);
create index environments_newest on environments (created_at desc, id);
create index environments_by_creator on environments (creator_kind, creator_id) where deleted_at is null;
create index environments_to_expire on environments (expires_at) where status not in ('tearing_down', 'torn_down');
create index environments_torn_down on environments (deleted_at) where deleted_at is not null;

-- Every label that was ever generated; none is used again.
create table environment_labels (
  label text primary key,
  environment_id text not null,
  created_at timestamptz not null,
  retired_at timestamptz
);
create index environment_labels_by_environment on environment_labels (environment_id);

-- What an Environment consists of now.
create table environment_services (
  environment_id text not null references environments (id) on delete cascade,
  name text not null,
  position int not null,
  kind text not null constraint environment_services_kind_check check (kind in ('static', 'process', 'image', 'postgres', 'external')),
  status text not null constraint environment_services_status_check check (status in ('waiting', 'building', 'starting', 'ready',
    'asleep', 'failed', 'inactive')),
  reason text,
  is_exposed boolean not null,
  -- Path → name of the service that answers it.
  routes jsonb not null,
  spa boolean not null,
  -- Of an external service.
  url text,
  artifact_id text,
  -- Where the gateway reaches a process now: host and port.
  address text,
  primary key (environment_id, name)
);
create index environment_services_by_artifact on environment_services (artifact_id) where artifact_id is not null;

create table deploys (
  id text primary key,
  -- In the order of creation: two can have the same time.
  seq bigint not null generated always as identity,
  environment_id text not null references environments (id) on delete cascade,
  repository_id text not null,
  branch text not null,
  -- Null until the branch was read.
  sha text,
  trigger text not null constraint deploys_trigger_check check (trigger in ('api', 'push', 'retry', 'wake')),
  status text not null constraint deploys_status_check check (status in ('queued', 'building', 'built', 'deploying', 'deployed', 'error',
    'config_error', 'cancelled', 'superseded')),
  -- What went wrong, in words, and what to do.
  message text,
  fix text,
  -- Problems of postern.yaml, with line and column.
  problems jsonb,
  -- The planned Environment, as JSON. Not jsonb, which would lose the order of the services.
  plan text,
  creator_kind text not null constraint deploys_creator_kind_check check (creator_kind in ('user', 'service_key', 'system')),
  creator_id text,
  created_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz
);
create index deploys_by_environment on deploys (environment_id, seq desc);
create unique index deploys_newest on deploys (seq desc);
create index deploys_by_repository on deploys (repository_id, seq desc);
create index deploys_under_way on deploys (environment_id) where ended_at is null;

create table deploy_steps (
  deploy_id text not null references deploys (id) on delete cascade,
  -- Empty: of the deploy as a whole.
  service text not null,
  step text not null constraint deploy_steps_step_check check (step in ('fetch', 'build', 'start', 'health', 'route')),
  status text not null constraint deploy_steps_status_check check (status in ('waiting', 'running', 'done', 'failed', 'cancelled')),
  started_at timestamptz,
  ended_at timestamptz,
  reused boolean not null default false,
  message text,
  -- The build whose log belongs to this step.
  build_job_id text,
  artifact_id text,
  primary key (deploy_id, service, step)
);
create index deploy_steps_by_job on deploy_steps (build_job_id) where build_job_id is not null;
create index deploy_steps_by_artifact on deploy_steps (artifact_id) where artifact_id is not null;

-- One run of a build command. Deploys of the same repository that need the same result share it.
create table build_jobs (
  id text primary key,
  repository_id text not null,
  engine text not null,
  platform text not null,
  -- Of everything that the result depends on.
  digest text not null,
  -- What is built. Null when the build has ended: nobody reads it then.
  input jsonb,
  status text not null constraint build_jobs_status_check check (status in ('queued', 'running', 'built', 'failed', 'cancelled')),
  -- The worker that runs it, and when it last said so.
  holder text,
  heartbeat_at timestamptz,
  -- How often it was started without an end, so that a build that ends its worker does not do so for ever.
  starts int not null default 0,
  -- Why it failed, or why it still waits.
  message text,
  fix text,
  last_lines jsonb,
  artifact_id text,
  created_at timestamptz not null,
  -- By the deploy that asked last.
  requested_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz
);
create unique index build_jobs_under_way on build_jobs (repository_id, engine, platform, digest) where ended_at is null;
create index build_jobs_waiting on build_jobs (created_at) where status = 'queued';
create index build_jobs_running on build_jobs (holder) where status = 'running';
create index build_jobs_ended on build_jobs (ended_at) where ended_at is not null;

-- Lines of the log of a build, many in one row: [[at, stream, text], …]. The ids of lines count from 1 in each build.
create table build_log_chunks (
  build_job_id text not null references build_jobs (id) on delete cascade,
  first_line int not null,
  lines jsonb not null,
  primary key (build_job_id, first_line)
);

-- Results of builds, used again in the same repository while their inputs are the same. Their content is kept in the blob store
-- under the owner kind `repository`.
create table artifacts (
  id text primary key,
  repository_id text not null,
  engine text not null,
  platform text not null,
  digest text not null,
  kind text not null constraint artifacts_kind_check check (kind in ('static', 'process')),
  -- Of static files: [[path, digest, size], …] in code point order of the paths.
  manifest jsonb,
  -- Of a process: one compressed tar.
  tar_digest text,
  tar_bytes bigint,
  file_count int not null,
  size_bytes bigint not null,
  created_at timestamptz not null,
  used_at timestamptz not null,
  encoded_at timestamptz
);
alter table artifacts alter column manifest set storage external;
create unique index artifacts_by_inputs on artifacts (repository_id, engine, platform, digest);
create index artifacts_by_use on artifacts (used_at);
create index artifacts_without_forms on artifacts (repository_id, created_at) where kind = 'static' and encoded_at is null;

-- What a gateway of its own may read of them: see the migration 0010. Not who created them, nor values of variables.
create or replace view gateway.changes with (security_barrier) as
  select seq, tx, topic, subject from changes where topic in ('site', 'config', 'environment');
create or replace view gateway.config_documents with (security_barrier) as
  select name, version, value, changed_at, null::text as changed_by from config_documents
   where name in ('sites', 'api-environments');
create view gateway.environments as
  select id, ''::text as uuid, access, label, status, status_message, revision, expires_at, deleted_at from environments;
create view gateway.environment_labels as select label, environment_id, created_at, retired_at from environment_labels;
create view gateway.environment_services as
  select environment_id, name, position, kind, status, reason, is_exposed, routes, spa, null::text as url, artifact_id, address
    from environment_services;
create view gateway.artifacts as select id, kind, manifest, encoded_at from artifacts;
