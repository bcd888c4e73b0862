-- A database of the last development version: commit 8c36b1a made it, with an administrator, two keys, a repository and a site,
-- and commit d5123e2 migrated it to the step 0031. Written by pg_dump --inserts; its comments and settings are removed.
CREATE SCHEMA gateway;

CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;

CREATE FUNCTION public.add_owner_storage() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  insert into owner_storage (owner_kind, owner_id, bytes)
  select owner_kind, owner_id, sum(size) from added group by owner_kind, owner_id
  on conflict (owner_kind, owner_id) do update set bytes = owner_storage.bytes + excluded.bytes;
  return null;
end $$;

CREATE FUNCTION public.begin_api_key_use() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  insert into api_key_last_used (key_id, last_used_at) values (new.id, null);
  return null;
end $$;

CREATE FUNCTION public.count_api_key() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  update api_key_counts set total = total + 1 where type = new.type;
  return null;
end $$;

CREATE FUNCTION public.keep_live_of_site() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  select v.size_bytes, v.published_at into new.live_size_bytes, new.live_published_at
    from site_versions v where v.site_id = new.id and v.number = new.live_version;
  return new;
end $$;

CREATE FUNCTION public.refuse_audit_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  raise exception 'The audit trail is append-only: % on % is refused.', tg_op, tg_table_name
    using errcode = 'insufficient_privilege';
end $$;

CREATE FUNCTION public.take_owner_storage() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
  update owner_storage s set bytes = s.bytes - gone.bytes
    from (select owner_kind, owner_id, sum(size) as bytes from removed group by owner_kind, owner_id) gone
   where s.owner_kind = gone.owner_kind and s.owner_id = gone.owner_id;
  return null;
end $$;

CREATE TABLE public.blob_variants (
    digest text NOT NULL,
    encoding text NOT NULL,
    stored text NOT NULL,
    size bigint NOT NULL,
    CONSTRAINT blob_variants_encoding_check CHECK ((encoding = ANY (ARRAY['br'::text, 'zstd'::text, 'gzip'::text])))
);

CREATE VIEW gateway.blob_variants AS
 SELECT digest,
    encoding,
    stored,
    size
   FROM public.blob_variants;

CREATE TABLE public.changes (
    seq bigint NOT NULL,
    tx xid8 DEFAULT pg_current_xact_id() NOT NULL,
    topic text NOT NULL,
    subject text NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE VIEW gateway.changes WITH (security_barrier='true') AS
 SELECT seq,
    tx,
    topic,
    subject
   FROM public.changes
  WHERE (topic = ANY (ARRAY['site'::text, 'config'::text]));

CREATE TABLE public.config_documents (
    name text NOT NULL,
    version integer NOT NULL,
    value jsonb NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    changed_by text,
    CONSTRAINT config_documents_version_check CHECK ((version > 0))
);

CREATE VIEW gateway.config_documents WITH (security_barrier='true') AS
 SELECT name,
    version,
    value,
    changed_at,
    NULL::text AS changed_by
   FROM public.config_documents
  WHERE (name = 'sites'::text);

CREATE TABLE public.site_labels (
    label text NOT NULL,
    site_id text NOT NULL,
    version integer,
    minted_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone,
    retired_at timestamp with time zone
);

CREATE VIEW gateway.site_labels AS
 SELECT label,
    site_id,
    version,
    minted_at,
    ends_at,
    retired_at
   FROM public.site_labels;

CREATE TABLE public.site_versions (
    site_id text NOT NULL,
    number integer NOT NULL,
    digest text NOT NULL,
    manifest jsonb NOT NULL,
    file_count integer NOT NULL,
    size_bytes bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    published_at timestamp with time zone NOT NULL,
    replaced_at timestamp with time zone,
    encoded_at timestamp with time zone
);
ALTER TABLE ONLY public.site_versions ALTER COLUMN manifest SET STORAGE EXTERNAL;

CREATE VIEW gateway.site_versions AS
 SELECT site_id,
    number,
    digest,
    manifest,
    file_count,
    size_bytes,
    created_at,
    NULL::text AS created_by,
    published_at,
    replaced_at,
    encoded_at
   FROM public.site_versions;

CREATE TABLE public.sites (
    id text NOT NULL,
    name text NOT NULL,
    owner_kind text NOT NULL,
    owner_id text NOT NULL,
    visibility text NOT NULL,
    label text NOT NULL,
    spa boolean NOT NULL,
    live_version integer,
    next_version integer DEFAULT 1 NOT NULL,
    epoch bigint DEFAULT 1 NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    deleted_at timestamp with time zone,
    restorable_until timestamp with time zone,
    taken_down_at timestamp with time zone,
    taken_down_by text,
    take_down_reason text,
    expiry_recorded_at timestamp with time zone,
    live_size_bytes bigint DEFAULT 0 NOT NULL,
    live_published_at timestamp with time zone,
    put_back_at timestamp with time zone,
    CONSTRAINT sites_check CHECK (((owner_kind = 'user'::text) OR (visibility = 'public'::text))),
    CONSTRAINT sites_owner_kind_check CHECK ((owner_kind = ANY (ARRAY['user'::text, 'service_key'::text]))),
    CONSTRAINT sites_visibility_check CHECK ((visibility = ANY (ARRAY['public'::text, 'private'::text])))
);

CREATE VIEW gateway.sites AS
 SELECT id,
    ''::text AS name,
    ''::text AS owner_kind,
    ''::text AS owner_id,
    visibility,
    label,
    spa,
    live_version,
    epoch,
    revision,
    created_at,
    updated_at,
    expires_at,
    deleted_at,
    restorable_until,
    taken_down_at,
    NULL::text AS take_down_reason,
    put_back_at
   FROM public.sites;

CREATE TABLE public.account_group_members (
    group_id text NOT NULL,
    subject text NOT NULL
);

CREATE TABLE public.account_groups (
    id text NOT NULL,
    name text NOT NULL,
    parent_id text,
    roles jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.account_tombstones (
    subject text NOT NULL,
    deleted_at timestamp with time zone NOT NULL
);

CREATE TABLE public.accounts (
    subject text NOT NULL,
    user_id text NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    password_hash text NOT NULL,
    enabled boolean NOT NULL,
    roles jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    signed_out_at timestamp with time zone
);

CREATE TABLE public.api_key_counts (
    type text NOT NULL,
    total bigint NOT NULL
);

CREATE TABLE public.api_key_last_used (
    key_id text NOT NULL,
    last_used_at timestamp with time zone,
    network text,
    program text
);

CREATE TABLE public.api_key_repositories (
    key_id text NOT NULL,
    repository_id text NOT NULL
);

CREATE TABLE public.api_key_usage (
    key_id text NOT NULL,
    per text NOT NULL,
    bucket timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT api_key_usage_outcome_check CHECK ((outcome = ANY (ARRAY['allowed'::text, 'denied'::text, 'limited'::text, 'failed'::text, 'dead'::text]))),
    CONSTRAINT api_key_usage_per_check CHECK ((per = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text])))
);

CREATE TABLE public.api_key_usage_totals (
    per text NOT NULL,
    bucket timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    count bigint NOT NULL,
    CONSTRAINT api_key_usage_totals_outcome_check CHECK ((outcome = ANY (ARRAY['allowed'::text, 'denied'::text, 'limited'::text, 'failed'::text, 'dead'::text]))),
    CONSTRAINT api_key_usage_totals_per_check CHECK ((per = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text])))
);

CREATE TABLE public.api_keys (
    id text NOT NULL,
    digest bytea NOT NULL,
    type text NOT NULL,
    name text NOT NULL,
    scopes jsonb NOT NULL,
    repository_mode text NOT NULL,
    owner_user_id text,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    lifetime_ms bigint,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by text,
    revoke_reason text,
    suspended_at timestamp with time zone,
    replaces text,
    replaced_by text,
    grace_seconds integer,
    first_used_at timestamp with time zone,
    imported_at timestamp with time zone,
    expiry_recorded_at timestamp with time zone,
    CONSTRAINT api_keys_check CHECK (((type = 'personal'::text) OR (owner_user_id IS NULL))),
    CONSTRAINT api_keys_repository_mode_check CHECK ((repository_mode = ANY (ARRAY['all'::text, 'selected'::text]))),
    CONSTRAINT api_keys_type_check CHECK ((type = ANY (ARRAY['personal'::text, 'service'::text])))
);

CREATE TABLE public.audit_counts (
    hour timestamp with time zone NOT NULL,
    event text NOT NULL,
    outcome text NOT NULL,
    count bigint NOT NULL
);

CREATE TABLE public.audit_event_keys (
    key_id text NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    seq bigint NOT NULL
);

CREATE TABLE public.audit_events (
    seq bigint NOT NULL,
    id text NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    event text NOT NULL,
    actor_kind text NOT NULL,
    actor_id text,
    actor_name text,
    credential text,
    target_kind text NOT NULL,
    target_id text NOT NULL,
    outcome text NOT NULL,
    reason text,
    request_id text,
    address text,
    agent text,
    details jsonb NOT NULL,
    key_ids text[] NOT NULL,
    CONSTRAINT audit_events_outcome_check CHECK ((outcome = ANY (ARRAY['success'::text, 'denied'::text, 'failure'::text])))
);

ALTER TABLE public.audit_events ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.audit_seals (
    seq bigint NOT NULL,
    event_id text NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    sealed_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT audit_seals_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT audit_seals_previous_hash_check CHECK ((length(previous_hash) = 32)),
    CONSTRAINT audit_seals_seq_check CHECK ((seq > 0))
);

CREATE TABLE public.audit_unsealed (
    event_seq bigint NOT NULL
);

CREATE TABLE public.blob_removals (
    digest text NOT NULL,
    decided_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone
);

CREATE TABLE public.browser_sessions (
    id text NOT NULL,
    digest text NOT NULL,
    user_id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    tokens_sealed text NOT NULL,
    access_expires_at timestamp with time zone NOT NULL,
    refresh_holder text,
    refresh_until timestamp with time zone,
    ended_at timestamp with time zone
);

ALTER TABLE public.changes ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.changes_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.job_leases (
    job text NOT NULL,
    holder text NOT NULL,
    held_until timestamp with time zone NOT NULL,
    last_run_at timestamp with time zone
);

CREATE TABLE public.login_attempts (
    state_hash text NOT NULL,
    browser_hash text NOT NULL,
    sealed text NOT NULL,
    return_to text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE public.notices (
    id text NOT NULL,
    user_id text,
    kind text NOT NULL,
    subject text NOT NULL,
    fields jsonb NOT NULL,
    dedupe_key text NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    read_at timestamp(3) with time zone,
    CONSTRAINT notices_kind_check CHECK ((kind = ANY (ARRAY['key_expires_7d'::text, 'key_expires_1d'::text, 'key_expired'::text, 'key_exposed'::text, 'key_dead_use'::text, 'key_suspended'::text, 'site_expires_7d'::text, 'site_expires_1d'::text, 'site_expired'::text, 'site_taken_down'::text, 'site_put_back'::text])))
);

CREATE TABLE public.oidc_records (
    model text NOT NULL,
    id_hash text NOT NULL,
    payload text NOT NULL,
    grant_id text,
    uid text,
    user_code_hash text,
    account_id text,
    client_id text,
    created_at timestamp with time zone NOT NULL,
    consumed_at timestamp with time zone,
    expires_at timestamp with time zone
);

CREATE TABLE public.owner_blobs (
    owner_kind text NOT NULL,
    owner_id text NOT NULL,
    digest text NOT NULL,
    size bigint NOT NULL,
    runs integer NOT NULL
);

CREATE TABLE public.owner_storage (
    owner_kind text NOT NULL,
    owner_id text NOT NULL,
    bytes bigint NOT NULL
);

CREATE TABLE public.provider_signing_keys (
    id integer NOT NULL,
    sealed text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT provider_signing_keys_id_check CHECK ((id = 1))
);

CREATE TABLE public.repositories (
    id text NOT NULL,
    full_name text NOT NULL,
    full_name_key text NOT NULL,
    clone_url text NOT NULL,
    default_branch text NOT NULL,
    environment_defaults jsonb,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE public.schema_migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE public.setup_links_used (
    digest text NOT NULL,
    used_at timestamp with time zone NOT NULL
);

CREATE TABLE public.site_grants (
    id text NOT NULL,
    site_id text NOT NULL,
    user_id text NOT NULL,
    epoch bigint NOT NULL,
    issued_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone NOT NULL,
    address text,
    agent text,
    generation bigint DEFAULT 0 NOT NULL
);

CREATE TABLE public.site_upload_blobs (
    upload_id text NOT NULL,
    digest text NOT NULL,
    size bigint NOT NULL,
    received_at timestamp with time zone
);

CREATE TABLE public.site_uploads (
    id text NOT NULL,
    site_id text NOT NULL,
    spa boolean,
    files jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text,
    ends_at timestamp with time zone NOT NULL,
    published_at timestamp with time zone
);
ALTER TABLE ONLY public.site_uploads ALTER COLUMN files SET STORAGE EXTERNAL;

CREATE TABLE public.sites_switch (
    only_row boolean DEFAULT true NOT NULL,
    generation bigint NOT NULL,
    CONSTRAINT sites_switch_only_row_check CHECK (only_row)
);

CREATE TABLE public.users (
    id text NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    name text NOT NULL,
    email text,
    created_at timestamp with time zone NOT NULL,
    last_login_at timestamp with time zone,
    found_at timestamp with time zone
);

INSERT INTO public.accounts VALUES ('LaqIB5DCjPkp0SCcJLFL', 'usr_puaqXY4yEjOeFSpetYMZ', 'ada@example.com', 'ada', '$argon2id$v=19$m=19456,t=2,p=1$6FKkiQmB77uYr0oMCjDlxA$T/2QwneW0+XhLACBQdDK+ZTyggpP5NSJOvdM2HFwbJs', true, '["user", "admin"]', '2026-11-24 13:47:48.805+00', '2026-11-24 13:47:48.805+00', NULL);

INSERT INTO public.api_key_counts VALUES ('service', 0);
INSERT INTO public.api_key_counts VALUES ('personal', 2);

INSERT INTO public.api_key_last_used VALUES ('6AxvlaDzOYmc', NULL, NULL, NULL);
INSERT INTO public.api_key_last_used VALUES ('JmI4SKBlaudC', '2026-11-24 13:47:49.491+00', NULL, NULL);

INSERT INTO public.api_key_usage VALUES ('JmI4SKBlaudC', 'day', '2026-11-24 00:00:00+00', 'allowed', 1);
INSERT INTO public.api_key_usage VALUES ('JmI4SKBlaudC', 'hour', '2026-11-24 13:00:00+00', 'allowed', 1);
INSERT INTO public.api_key_usage VALUES ('JmI4SKBlaudC', 'minute', '2026-11-24 13:47:00+00', 'allowed', 1);

INSERT INTO public.api_key_usage_totals VALUES ('day', '2026-11-24 00:00:00+00', 'allowed', 1);
INSERT INTO public.api_key_usage_totals VALUES ('hour', '2026-11-24 13:00:00+00', 'allowed', 1);
INSERT INTO public.api_key_usage_totals VALUES ('minute', '2026-11-24 13:47:00+00', 'allowed', 1);

INSERT INTO public.api_keys VALUES ('JmI4SKBlaudC', '\xbeb3b3060754fa51abd0aa4d8b0f03bb95c1a257a096064874abac5ff3306a0f', 'personal', 'deploy', '["sites:write", "repos:read"]', 'all', 'usr_puaqXY4yEjOeFSpetYMZ', '2026-11-24 13:47:49.339+00', 'usr_puaqXY4yEjOeFSpetYMZ', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.api_keys VALUES ('6AxvlaDzOYmc', '\xfb6cf8ac770cc7a9832760f6a82b4498191829081fc72b8853a9d3c44ba03e4f', 'personal', 'old laptop', '["repos:read"]', 'all', 'usr_puaqXY4yEjOeFSpetYMZ', '2026-11-24 13:47:49.493+00', 'usr_puaqXY4yEjOeFSpetYMZ', NULL, NULL, '2026-11-24 13:47:49.515+00', 'usr_puaqXY4yEjOeFSpetYMZ', 'owner_request', NULL, NULL, NULL, NULL, NULL, NULL, NULL);

INSERT INTO public.audit_counts VALUES ('2026-11-24 13:00:00+00', 'user.created', 'success', 1);
INSERT INTO public.audit_counts VALUES ('2026-11-24 13:00:00+00', 'api_key.created', 'success', 2);
INSERT INTO public.audit_counts VALUES ('2026-11-24 13:00:00+00', 'api_key.revoked', 'success', 1);
INSERT INTO public.audit_counts VALUES ('2026-11-24 13:00:00+00', 'repository.created', 'success', 1);
INSERT INTO public.audit_counts VALUES ('2026-11-24 13:00:00+00', 'session.started', 'success', 1);
INSERT INTO public.audit_counts VALUES ('2026-11-24 13:00:00+00', 'site.created', 'success', 1);

INSERT INTO public.audit_event_keys VALUES ('JmI4SKBlaudC', '2026-11-24 13:47:49.36+00', 4);
INSERT INTO public.audit_event_keys VALUES ('JmI4SKBlaudC', '2026-11-24 13:47:49.47+00', 5);
INSERT INTO public.audit_event_keys VALUES ('6AxvlaDzOYmc', '2026-11-24 13:47:49.497+00', 6);
INSERT INTO public.audit_event_keys VALUES ('6AxvlaDzOYmc', '2026-11-24 13:47:49.522+00', 7);

INSERT INTO public.audit_events OVERRIDING SYSTEM VALUE VALUES (1, 'evt_lzkrVnqsDhV0RmOg9Gma', '2026-11-24 13:47:48.811+00', 'user.created', 'system', NULL, 'postern', NULL, 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'success', 'first_administrator', NULL, NULL, NULL, '{}', '{}');
INSERT INTO public.audit_events OVERRIDING SYSTEM VALUE VALUES (2, 'evt_zEistr4ZOycmli4DkO8V', '2026-11-24 13:47:49.282+00', 'session.started', 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'ada', NULL, 'session', 'ses_QCtEZrlpDIlZVidSVt2g', 'success', NULL, 'f8943705-89ce-4704-a6d3-00ce25cf02fb', '127.0.0.1', NULL, '{"userId": "usr_puaqXY4yEjOeFSpetYMZ"}', '{}');
INSERT INTO public.audit_events OVERRIDING SYSTEM VALUE VALUES (3, 'evt_Mp7fqG8WoJajuHkzq1K7', '2026-11-24 13:47:49.322+00', 'repository.created', 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'ada', 'ses_QCtEZrlpDIlZVidSVt2g', 'repository', 'repo_jOCv0Lj6bVENTlQ6cNG4', 'success', NULL, 'c97e6c88-b9cf-4f0c-a8eb-6dc277f8b356', '127.0.0.1', NULL, '{"after": {"cloneUrl": "https://git.example.com/acme/website-deploy.git", "fullName": "acme/website-deploy", "defaultBranch": "main", "environmentDefaults": null}}', '{}');
INSERT INTO public.audit_events OVERRIDING SYSTEM VALUE VALUES (4, 'evt_VKFK9sxCb2Z3VUagqVt4', '2026-11-24 13:47:49.36+00', 'api_key.created', 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'ada', 'ses_QCtEZrlpDIlZVidSVt2g', 'api_key', 'JmI4SKBlaudC', 'success', NULL, '2ba51603-58c1-403a-bcb8-ede4b2b09781', '127.0.0.1', NULL, '{"after": {"name": "deploy", "type": "personal", "owner": "usr_puaqXY4yEjOeFSpetYMZ", "scopes": ["sites:write", "repos:read"], "expiresAt": null, "repositories": {"mode": "all"}}}', '{JmI4SKBlaudC}');
INSERT INTO public.audit_events OVERRIDING SYSTEM VALUE VALUES (5, 'evt_nyLQGgeZ46RnkCrF9b8Z', '2026-11-24 13:47:49.47+00', 'site.created', 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'ada', 'JmI4SKBlaudC', 'site', 'xywkiwjh6o', 'success', NULL, '712f703f-b2f8-4cc0-8d40-1243a508b3e9', '127.0.0.1', NULL, '{"after": {"spa": false, "name": "kept", "owner": "user:usr_puaqXY4yEjOeFSpetYMZ", "expiresAt": "2026-12-24T13:47:49.423Z", "visibility": "public"}, "version": {"digest": "717cfa27fc6bbcc067c5a2c6633b85819e383ee483a71e830fdc746fad603bb7", "number": 1, "fileCount": 1, "sizeBytes": 17}}', '{JmI4SKBlaudC}');
INSERT INTO public.audit_events OVERRIDING SYSTEM VALUE VALUES (6, 'evt_dffjvg3UlPvlfHjqeAal', '2026-11-24 13:47:49.497+00', 'api_key.created', 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'ada', 'ses_QCtEZrlpDIlZVidSVt2g', 'api_key', '6AxvlaDzOYmc', 'success', NULL, '7d456042-8d3d-4e8d-a518-5685113c2675', '127.0.0.1', NULL, '{"after": {"name": "old laptop", "type": "personal", "owner": "usr_puaqXY4yEjOeFSpetYMZ", "scopes": ["repos:read"], "expiresAt": null, "repositories": {"mode": "all"}}}', '{6AxvlaDzOYmc}');
INSERT INTO public.audit_events OVERRIDING SYSTEM VALUE VALUES (7, 'evt_sAFw6niOszQgo0OMpkuE', '2026-11-24 13:47:49.522+00', 'api_key.revoked', 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'ada', 'ses_QCtEZrlpDIlZVidSVt2g', 'api_key', '6AxvlaDzOYmc', 'success', 'owner_request', '57a0d857-2ee5-4745-b708-bcf2861c617a', '127.0.0.1', NULL, '{"after": {"status": "revoked"}, "before": {"status": "active"}}', '{6AxvlaDzOYmc}');

INSERT INTO public.audit_seals VALUES (1, 'evt_lzkrVnqsDhV0RmOg9Gma', '\x0000000000000000000000000000000000000000000000000000000000000000', '\xc3ade58d281d33172ffd2345c93bc34da756710d6624fd3742449845fb052e28', '2026-11-24 13:47:48.98+00');
INSERT INTO public.audit_seals VALUES (2, 'evt_zEistr4ZOycmli4DkO8V', '\xc3ade58d281d33172ffd2345c93bc34da756710d6624fd3742449845fb052e28', '\x97e020f16e250827cd6269b05ad45f3dc448c2fe010db265648fff4f191e93e3', '2026-11-24 13:47:49.956+00');
INSERT INTO public.audit_seals VALUES (3, 'evt_Mp7fqG8WoJajuHkzq1K7', '\x97e020f16e250827cd6269b05ad45f3dc448c2fe010db265648fff4f191e93e3', '\xf5d62b4a14ac5e39f3149fa14045f5d9466e6dee2bffc687a62901003ac9a6a6', '2026-11-24 13:47:49.956+00');
INSERT INTO public.audit_seals VALUES (4, 'evt_VKFK9sxCb2Z3VUagqVt4', '\xf5d62b4a14ac5e39f3149fa14045f5d9466e6dee2bffc687a62901003ac9a6a6', '\x93c102b9ed6e1e1cb010f96866cdb63e58e5bf315852bbd88fe74e4ef05bcf30', '2026-11-24 13:47:49.956+00');
INSERT INTO public.audit_seals VALUES (5, 'evt_nyLQGgeZ46RnkCrF9b8Z', '\x93c102b9ed6e1e1cb010f96866cdb63e58e5bf315852bbd88fe74e4ef05bcf30', '\x51ac3101cfef58974231d7a4956aaf4f1f7cb495e34a163f97a72b5e93d5c610', '2026-11-24 13:47:49.956+00');
INSERT INTO public.audit_seals VALUES (6, 'evt_dffjvg3UlPvlfHjqeAal', '\x51ac3101cfef58974231d7a4956aaf4f1f7cb495e34a163f97a72b5e93d5c610', '\x9e1e3e8611e32db958a661705fd96afc231a14c6c2f59c09eea573160244bec9', '2026-11-24 13:47:49.956+00');
INSERT INTO public.audit_seals VALUES (7, 'evt_sAFw6niOszQgo0OMpkuE', '\x9e1e3e8611e32db958a661705fd96afc231a14c6c2f59c09eea573160244bec9', '\x2b7cee43450edd7b09526393f2b618b4c86046592e2b1c1a26d39cf246df4cdc', '2026-11-24 13:47:49.956+00');

INSERT INTO public.browser_sessions VALUES ('ses_QCtEZrlpDIlZVidSVt2g', 'BUhVqvUQMrEZkLNU3lwGTQ9Pc9MNfWJnaGiD4q4CTZk', 'usr_puaqXY4yEjOeFSpetYMZ', '2026-11-24 13:47:49.277+00', '2026-11-24 13:47:50.147+00', '2026-12-01 13:47:49.27+00', 'v2.xGIrAiN4.UPyt8rXwRhEVxE5gE4OWCEQskz7icpHlgHld3h6cPneE6mWtQc42q-lfcrU5Jl1NqwRk5TZ2dQosR8F9PaPC8BTm35bqDLZVyH8EPqmscjUxAm-fGfNnOxONnqWF5rez0iy26S9we2QA2XxMBAmdhaUxp0RNIF_Cl311zHSvsJ67Elqn3hhFbxencWo48GvOJSvl17xP65zrXp9pNsVYEzq0sw3OvDVnF6OMAxwtghp4B9iTs18', '2026-11-24 13:52:48.264+00', NULL, NULL, NULL);

INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (1, '774', 'principal', 'LaqIB5DCjPkp0SCcJLFL', '2026-11-24 13:47:48.81+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (2, '789', 'repository', 'repo_jOCv0Lj6bVENTlQ6cNG4', '2026-11-24 13:47:49.326+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (3, '791', 'site', 'xywkiwjh6o', '2026-11-24 13:47:49.472+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (4, '793', 'key', '6AxvlaDzOYmc', '2026-11-24 13:47:49.523+00');
INSERT INTO public.changes OVERRIDING SYSTEM VALUE VALUES (5, '795', 'site', 'xywkiwjh6o', '2026-11-24 13:47:50.964+00');

INSERT INTO public.oidc_records VALUES ('Session', 'tYZoTGvtohxXR-GmBDbqKDIpwDBefWC5nnbIIB5tBcw', 'v2.xGIrAiN4.g659LOXBeMuI7NN5pySowiC-zuXPb6xmfOePxSmvK4wVgQHQkLzyPeYndSn2iHriSoHFe0-Jx4dr27jmGVrUENVWo12YI8Doctw5z4LDJbFuIPyOIlMgw5bzA_y8x162vHNoBdEm7lxidfHk0CF6-U0of2Ag1vYpolPw4gwUvdr6gOgwwclDJ5L_fdsBMBCXc_YCem2pTBepwFs6Lx_1jBGAUYxL8GS9x4dFWrzAbz0SE2X6bNwrzVbh8LnV-GBPm72Bh2QETGyDEpDnPCVZr3179vl6JzGyOAr3yQgfe6BC_FqU-YSC-ykuhMcvD375SF--7Co7o5YA8WuIwAEeQLakrUvXVByyzhUw5be9Oeyy06BdHiaNvXkn-Y6BRCIOYu-vicx9_CWUecuZ20rZObflMXVrTCJtllcGT2-QT_UW1ySMrg0cJN29PamMWS1jJA8I2v9FB2M_KUo6gCbwNitKCiwFMRtWTPXjQbo-mLMmDFXwa-MClRQab0_gIvIm3m4Ddm5SioP6Y26MkhGpZg', NULL, '9MpP-WvPRc-OV_fak4cE6SS9f0UIRU8-TpwscOvv5pF', NULL, 'LaqIB5DCjPkp0SCcJLFL', NULL, '2026-11-24 13:47:49.193+00', NULL, '2026-12-01 13:47:49.193+00');
INSERT INTO public.oidc_records VALUES ('AuthorizationCode', 'SiNf2uLAQ8HAS29hAb6oqwVv-SqpQd-A5lDJr95AMDQ', 'v2.xGIrAiN4.CUV2IoF7thxncZfHlcbuElGK5n_7cE2gzCoLRehpDZ52LHh6UiHaenydfxawV69ZMV1HflDO3EcWGJV4N7R8kxa-uW-CK9plrQ467m6K5oniW69HZ_Mjxlaztc9ZesDoUmRPGv9sTO7XdXaQmDj_TWEDXMH9TyIRSqB2fGCJXU_iAvD1ajzWgv71dULQibLPjWnMBDPw2RWqFfwLDW9XTkZCGQXZGdygNZJsX06mlEgX1QWwI9bNbf430H5kCTkPWOq0bNx8uekwCHGJjc0UHGDPbB0V4cWDL3e1m4WG8FL3xUyA7G8zMO9pR4GOfVAd1USLKGhxDJhenGu2KBQf34XStK0FYgyJOc5zZTpqx2KYEeuoNo3HfFPGozcHOO31RhVeXGZBPGMvyNUaWi8iZzSxX2WovI78n1I59N5EJ4bGNsSFMZP5leUyTawYhXsvtjaE47IfPTkAx5WplFSmVuL9TUIVAfKqW7urHLZwRsCVU4cIHLZ7csFJoseS8pqLgOdzJezxveJlCOzMrbCAH9VQYWnsjU9WwMXSeloCNt35BCJrUnFl0Gck_b4zLwigdJgj4Qgjml_Vi4eYloq5XHztEk4LVrkjPZ4BXGBKFkN_PTO50HiG_d9iZicrYQBtd380zD0dPe7P_ohAmZTQ8RVcWFf7jLfjK-UedAUOhGwgYQmQhb3jedw5m08g6FkZYSNn5i0-JDKlQ2ubyRjoi0cwqiSvwh2swx0RVQbVkA5o8E71i_f3wEi1SAEoL11A2O3swI5cJ1wG4Sm0FkyCBumXp7_bCHlmpjCsNUxfSM_j2TuSobmikh_25Eq0wt5Uu01J9YZIuIh36Dho-nWx0WfPB3KeDUGJ1ga3MSrvY3ctJwzhpVCByZnX', 'qU_z_aZ8Gdb8RTw3Tsig31mi3gv44-s5vHSBI6ZY6dk', NULL, NULL, 'LaqIB5DCjPkp0SCcJLFL', 'postern-web', '2026-11-24 13:47:49.18+00', '2026-11-24 13:47:49.236+00', '2026-11-24 13:48:49.096+00');
INSERT INTO public.oidc_records VALUES ('Grant', 'IgyoTkryervWBx-W9-kckQc_OE_-bvyoAgiLeiCG4TY', 'v2.xGIrAiN4.c1Gu6qfTfHONUToZZasZFykJNQTgfnnj9rcgiXRCIrReIgDMX7j1HD_edktfm0NBhMDsnvQArQuRm5vjzqPjtSRDU5LCvMCQcVT_44i9rAfPTen8bF00OFnEbRGxRff2h-jmRUp309Ef8bxKiHXpeZQrPCaq05S_GjYpBbMzbt-8BFeMdzo1XJeyP5fLOM-7vqblvNVBOXkDBytt_j06y6Q4he3ZJ8_pC-04Z_cOz2aKfi9_dkHsmtn98Mtw08odc0Z_nh0Hd2DYP6hMjpQYVl9E9EP4wJNIg6SPXoAZIVEivZEEJUi_qg', 'qU_z_aZ8Gdb8RTw3Tsig31mi3gv44-s5vHSBI6ZY6dk', NULL, NULL, 'LaqIB5DCjPkp0SCcJLFL', 'postern-web', '2026-11-24 13:47:49.082+00', NULL, '2027-01-23 13:47:49.082+00');
INSERT INTO public.oidc_records VALUES ('AccessToken', 'FTcBlvB3yxy99Q2m_sgfKwSKXFGZMDmIgO2qxaHZd-4', 'v2.xGIrAiN4.0nWMMIeqbF2jYwfVpOo0wBGGut4xuheiDBp5xqJ5P-iZBUPy8YchxQUmYrthsfhh_UX92yqBj7jT9J9PnW-D-8piINxrTl_bEPbTifooVKyb3Wngg44pnIMhmDbPH8mDMhfJ0iOZYv_3w77g9f8_tCKBZcC8h7LVT20Voe-15OKRsUt0lLip3i6CLon7dGHqz00Whkm0T5kUmUlycS52HDDoCKT_jg82K7SJklBknpIeMhN0OOs6cFIcWo3Q2Rn_kufVv_arMwTVCXg5RIPVlthszKLizJTsY_LgmsVkJ3T-YwsIMyIU16B_hqCAl6lrgNpFf3IfQqrn7TzgNX6ELaqHfdrq2T-hJXTcaXM9hcYwmYGSOVIeugy7gD4z_NpK9TUlpR7ZRUUWINY3MOOhbi2vf1ZMEQh_mlwuMScIKzDrb49wCPI3WJ87_DJH08rJcJKqCs-ef3WwdzfmgaVB6Oj6kh2nkPSqZGg2U4nPrMdybmDeLDAnBEqwQbjffyYIh6_9Uswmo1ETBd7wIpEsXJxsM6NtkWuCuOZLFCQ4Piz6XkfMwUzBBVEGlibA2rIgFqbTAlb3_JmoMD4ktDIz2Iyr', 'qU_z_aZ8Gdb8RTw3Tsig31mi3gv44-s5vHSBI6ZY6dk', NULL, NULL, 'LaqIB5DCjPkp0SCcJLFL', 'postern-web', '2026-11-24 13:47:49.249+00', NULL, '2026-11-24 13:52:49.247+00');
INSERT INTO public.oidc_records VALUES ('RefreshToken', '4bHipf8hDEKnXN-oUowR4dJLffKX_tIQexJ536632PE', 'v2.xGIrAiN4.ADH_k19Is-zQxwt4WS3jj7sUrj8dexU8WqcUOuplGIQ8-emAlaQ5gJRJZcMP1zsqgRsemiP9cMS5JRU_Ak1pA7Db5d24Ry_0bSzwYSTD7ShI1gsgusGXES1uyJhEeHI0Jo_X6A1DrcDd9OeKbHltqOfsjqJyr8-PvUCXF_1FpJ1p8bT9v5TKS5IlBSZpEAaim2Wu5TfPycLTRZgrXOWMaL-04DdWGC4dUae80PwZLTvGE9m88NYZsBz0Pxq6NuI5YSXQABioHy_7tftBF-hoP5HTA6A0o2qJPcEYu5wC--I7Odz8jsfCVogLIRbtp_HoVy44sL34XRGWb_zUbeYAFgydIq9osC_jxyGDGp2XOOZcgX8zEMod1JV_e8aeAqj9PN29L8aWkhLcfXuH9IV63qTPM-mvzDxjyUM8SF2S030pdYm5KLE96rQFu_X3_NCvFLoqb0A2zqvnI8eAUP0pELh3q816LSwEuA4OHMgw8pJuRo_tfEgOvvhdsSUbzdZNYbplesVEGEPMC5batRWIPLZbGTu9kLD5tLH8eOHLU0RBk8J_hzJvz2xRQ505yZSzHFT4Z4bm1sMNpzJdqCapHgBZSU8zDRcQV01ltjDg_Vx7eoaHDdim94YPs-yClewE7_4-UwMtAxSU1spQ7cwPW2RYydiZBcFWbZ9Y_FXFUPo8mfhVjhrrCmGO3gfRL5UQpe5yPVCu4SN4xh5bv89kgXA5iXPuwig820_JYHbNLlEzNQCnE-CkztVweOXWuB-7', 'qU_z_aZ8Gdb8RTw3Tsig31mi3gv44-s5vHSBI6ZY6dk', NULL, NULL, 'LaqIB5DCjPkp0SCcJLFL', 'postern-web', '2026-11-24 13:47:49.252+00', NULL, '2026-12-01 13:47:49.251+00');

INSERT INTO public.owner_blobs VALUES ('user', 'usr_puaqXY4yEjOeFSpetYMZ', '11dfd54211cca029580d3bb094e45969b74f2fbf57e960992f57e2cb2c25517d', 17, 1);

INSERT INTO public.owner_storage VALUES ('user', 'usr_puaqXY4yEjOeFSpetYMZ', 17);

INSERT INTO public.provider_signing_keys VALUES (1, 'v2.xGIrAiN4.dFaFo74aAjIlAmr9p2vnF_5Qf5ZvMUCSdiiy7ZhbKf3Zf4hhozrADnshbzkcEMq18Dc2lS9gv3YBQBlOFI6IxBpEENN_wKSW_VB-Jpi8epA-5a8QJlea__tyx2-GgAmkAjEP_Fj9ncR5Z71ZK09PwXwmk3bsX22-lLmXer-cm7zGVRfURbwCumNhPPlEwsQZNO7gRTPHOvptSD99RUfg7LEJtGmdL4rh2oG7xbO0AGzvzeC4BJkc2knnuH69TUEWZe65bonw_ZaiUcIl02KQxgJNRkmypxoV_09lkHdNxN6JL3FF6FyuuNQsx_hrMzPrfjpH_XqB_0kEv9MH8nG4JNWHK3h6Lo4HzAqNOguTzBRvhotNrNZz99pOayyH455dAEeVULxJCnhXUrPQxSDWDx06KFNVYFZ-YwavIZKQ2Cj7J94WJD8so7tTeWO9yGAwAC0gerONIDbjRZBbY8YmzGpcMdqBTUtdGNFmayfM5So_xfB67uogFDAdwMARs2B_q2VlptlSt3MeTS3ZYmP9hh9drW4vNEr3B7VkexZa4NZjco1JK-3UdOw8712oms9X1qlWbDkKNgdfaBXlFbCZPIekFaFqWxDfKfVIxWUBchiV_bT-FcATeCYV0l8qruTrhqBsyDuaP3_IZXNZlZeieAbfoxx8jaMynyYjKdZFSx1e6pQW4-6E9kIBURhKdkEWgjT25ciPlb2QBUGGC8f--ayJLdhTsnYNhMPB2cW0u6XQjFa11pcodl8_p8lqCdQrr-VEopniVTFEn2b1yUzyt9bV3I2FN9YcgIqj-BJdV7PUDzrJJVYIOC_VOnbwLDo7dmLn_P4vcovO-Vz8W7eq9lPk1_oIoqkJX0oI7daU9phmHv8Y7KqBbQT81yoY0h26g430rRnYfmnJBxxD9b1r9y8D5covaE9J-B1CAkLeIz19YyQ1lhDpKtSLiG2VdUrZNFrBNBolRK1B8b-scA9CpwjR6NCwxHG21IzeIXjyNiUx8pte-QIrn_OWAUVpMVNcAo78hwbtE5vq6bBI7cZ3XwTbp_nEPBTWc64vqPGy0yZuVD2ZtNKUih2lsWFDQl0fwCGcR9OVmzqOsvo8IuMOUKy7B6U2hMwwaZ80evKv_XtUveKjfRtaXiUT5csGOyrs3dBJOfBywzXjq0-5LR3pfUxh8y1fwgf8U_1_3lfVyVCznLAcn2Ed1AFj45-3Y31lsoauMcYnqUzy3dCIH0f8g24HQfMazo7bgBEOV1zDPa5skggjzq4helwF9eSkUcPrJxr7cXEjdV1nIJS4SoBNpQL583ZYi21sng2GJkAlTm1BuPHeKv0dVeQ22mv9l_umWxETz0R8Eu_tiW4hUktcaPK_OppPVDs095Dd13QcrUJPBCfNGww3ETReUXFeOZloaKKIYJCK8FIz-TwnGsyNb_aq6Hu4gxrx2sVL4j0iIfLnu3tpxrsH1Kt1TGNyjkIHrqpTKnSEg6R5L6dzr4rave-Snedx1EoQ7yI_d0CBYk0oSuJydFMB7E2G_9JJdwTR0qdTm82zVp-VzeBGLGy2oUgxJy4TRNg7lwi9YrK5vACI5OhoviLTP-kYFdxU_yOR9MWs_3nFoQhXmkbdmx9D1iF99_pB-LJ8-U0pprmjHO0-Wp9XLuoYhrZZJY3cQxkKJd_o0jTdK014kW2-YCGlKg5STFviWXuGrUvLDrZkQ73LuByWAJgsuKps_Cym6ph8KfrKUT_rJQnc2oD3FvlNEkTKg4Wwg_W76BFQ-jK8Pf4-HvCseOoXeEURBgGaLcAkoMKM1XkEtiB4GqIVb_VDKMTwZXE5_xo-dPfzjgsqfhDm7m6WLsA52RcX13cKeF28GD8nTwsjmzK335VtiCgNRGeZ4QOeywsPp9PueppNNj7t5yvO32IHR4mS5IVbbg2F16Syk4MzYLCeIUr97ot_qZ2XN3ZsxEACFOFbimo4zUR8HgipAqpQ6gegLeJW5Mdjg6t0vmj2OnhhqI1bt5hG0xVA2GqkkXoXuzSyandgU-kQYPtx0eTHV4XmC17V8ISr3H6CPA8qAI5Un4BkFbMiZul6JQ-pFLSeVb16AoAgZjw3DXf1FBBKDEhq21PA2EPt7OgXXT3p1whtrCmU_WPx0GuP-9N1zKkIjpyUR4O_XfcCV2iRXlcaXQ1eEf826uYyBb7nR7n8bi6HFSGWnmy0SxJw8Pp4bNPCvJEnwVL2N3tOUVKfAk2e0gatqO4ZX5Irr3iQ4ZcDoU0Mn2ebOh1dbKBVcstfM_aEEJDm6Q5LeKozcMOVIPyqpBJuUB5vaRsZb-tkNg', '2026-11-24 13:47:48.692+00');

INSERT INTO public.repositories VALUES ('repo_jOCv0Lj6bVENTlQ6cNG4', 'acme/website-deploy', 'acme/website-deploy', 'https://git.example.com/acme/website-deploy.git', 'main', NULL, '2026-11-24 13:47:49.317+00', '2026-11-24 13:47:49.317+00');

INSERT INTO public.schema_migrations VALUES ('0001_platform.sql', '026381f7eea3bf9f803e6ae6cb99e3f412e49c2fde98cdd242967614f50351f4', '2026-11-24 13:47:47.688+00');
INSERT INTO public.schema_migrations VALUES ('0002_audit.sql', 'd32096947491d723c5e110cad443e56dbb3fd560d9b6ecd330797d62ca818878', '2026-11-24 13:47:47.775+00');
INSERT INTO public.schema_migrations VALUES ('0003_identity.sql', '4e7773ce3354f3d902a30202ef654b0131a508918b4eb9ec849238fb4dd016ff', '2026-11-24 13:47:47.906+00');
INSERT INTO public.schema_migrations VALUES ('0004_keys.sql', '8b1c6508c41452294163e48368d4f196d048d9820144502f53e7f1552ad1a43f', '2026-11-24 13:47:47.964+00');
INSERT INTO public.schema_migrations VALUES ('0005_notices.sql', '0d1602feacd023a77f530010e4e9d7487d183b91c6def036428552a2ac502c45', '2026-11-24 13:47:47.981+00');
INSERT INTO public.schema_migrations VALUES ('0006_identity_tombstones.sql', '06412804139aa40561272b071aed7a01212b1e56f8494f6facef5114c676ee9c', '2026-11-24 13:47:47.99+00');
INSERT INTO public.schema_migrations VALUES ('0007_signed_out_at.sql', 'bc3fc6eb2b91a9e71b28740fe27816a09a34d4175fc63424dec2705fc84904e9', '2026-11-24 13:47:47.994+00');
INSERT INTO public.schema_migrations VALUES ('0008_sites.sql', '17245f97e8979c571a53951aaa3149068e3f9113fc7744ea38fa8ccfa5cca773', '2026-11-24 13:47:48.078+00');
INSERT INTO public.schema_migrations VALUES ('0009_blob_removals.sql', 'b00df3d13b82163212d43812b635391210d433ce87fc026c19dd6f7a0e70d962', '2026-11-24 13:47:48.084+00');
INSERT INTO public.schema_migrations VALUES ('0010_site_notices.sql', '233fac1a3b07cdb302ccb26b8e2f293372035d044efd54e364a8c164636dc69d', '2026-11-24 13:47:48.088+00');
INSERT INTO public.schema_migrations VALUES ('0011_manifest_storage.sql', 'c62c8462f94d798aa78248c7148e770d04353a3459f07f35db21e3341d2b2a3a', '2026-11-24 13:47:48.09+00');
INSERT INTO public.schema_migrations VALUES ('0012_grant_generation.sql', '1cccadc0aaa2ab99d24da9f0842c225119dea7faa198d69ebe8c6433c431ebbb', '2026-11-24 13:47:48.151+00');
INSERT INTO public.schema_migrations VALUES ('0013_key_lists.sql', 'e6c85134b11638605732a8ee92fcb420f2999cc1ec9baf2110d790a27362b6d5', '2026-11-24 13:47:48.181+00');
INSERT INTO public.schema_migrations VALUES ('0015_overviews.sql', 'd4dd38a48922dec8388485f595edf395c326af1702cffa553e838106c1fd6c24', '2026-11-24 13:47:48.231+00');
INSERT INTO public.schema_migrations VALUES ('0017_gateway_views.sql', '0f2e7b6f5d90fcb802895bc983002b57d0d8adea287f09baea57c6629c6d46d3', '2026-11-24 13:47:48.248+00');
INSERT INTO public.schema_migrations VALUES ('0018_users_found.sql', '8b27bf69af28c179e4cd6f89cbfad20f0a623259a5dbbf0f06f34aac5c63b552', '2026-11-24 13:47:48.26+00');
INSERT INTO public.schema_migrations VALUES ('0019_sites_in_order.sql', '4dc0de97431ae097e0f9d4a99b1370cbfc3e9180bf91d6c612fd3ad4a2e35433', '2026-11-24 13:47:48.288+00');
INSERT INTO public.schema_migrations VALUES ('0020_gateway_views_narrow.sql', '15b154a318c4f5e90ca28fc599ea25f692e716b52c6abd4fc8681c217bd810eb', '2026-11-24 13:47:48.303+00');
INSERT INTO public.schema_migrations VALUES ('0021_people_in_order.sql', '0f24f8e35012dd1f1d2f5097b87648196b9abef538165dde50caf4c0d0241949', '2026-11-24 13:47:48.314+00');
INSERT INTO public.schema_migrations VALUES ('0022_put_back.sql', '632bf0b732027d663c0ea4910d8f7f51e24064c044424bc1fb3368ebd5834836', '2026-11-24 13:47:48.322+00');
INSERT INTO public.schema_migrations VALUES ('0024_one_spelling_of_an_email.sql', '8a0135d8ab7ea062e3ba35c7744b30fdd46014a1fb8ca2697297cf692d33f5b3', '2026-11-24 13:48:38.115+00');
INSERT INTO public.schema_migrations VALUES ('0026_oversight_notices.sql', 'add2d575ca0f6bc9e6968723bcd5f681c9e98535758599b012ecdb20ebf8b5ee', '2026-11-24 13:48:38.133+00');
INSERT INTO public.schema_migrations VALUES ('0027_sites_never_published.sql', '245cf17f3fb2254b627a72e040c570dd29cefbf2865c9d79a8ca990245af2d12', '2026-11-24 13:48:38.148+00');
INSERT INTO public.schema_migrations VALUES ('0028_last_used_from.sql', 'e1c53c29755b8155d9ea059d09d429b884964e55d4bf29347b6bb9579a113ab5', '2026-11-24 13:48:38.158+00');
INSERT INTO public.schema_migrations VALUES ('0029_parts_of_repository_names.sql', '1295e596257e3a9a218f09a5893872f142ac45f155b1037401a15f32158f197e', '2026-11-24 13:48:38.205+00');
INSERT INTO public.schema_migrations VALUES ('0030_parts_of_site_names.sql', '0d62f036019619db40553df29c708406fb1b22e2e2020ed4ca839feb4d795796', '2026-11-24 13:48:38.213+00');
INSERT INTO public.schema_migrations VALUES ('0031_parts_of_key_names.sql', '2ab9da9484c731f4a887e9048efa57a39b80bde76e16e4102e75fdb19c00859d', '2026-11-24 13:48:38.231+00');

INSERT INTO public.site_labels VALUES ('izdm4a3ffdhgr6dch', 'xywkiwjh6o', NULL, '2026-11-24 13:47:49.423+00', NULL, NULL);

INSERT INTO public.site_versions VALUES ('xywkiwjh6o', 1, '717cfa27fc6bbcc067c5a2c6633b85819e383ee483a71e830fdc746fad603bb7', '[["index.html", "11dfd54211cca029580d3bb094e45969b74f2fbf57e960992f57e2cb2c25517d", 17]]', 1, 17, '2026-11-24 13:47:49.423+00', 'usr_puaqXY4yEjOeFSpetYMZ', '2026-11-24 13:47:49.423+00', NULL, '2026-11-24 13:47:50.964+00');

INSERT INTO public.sites VALUES ('xywkiwjh6o', 'kept', 'user', 'usr_puaqXY4yEjOeFSpetYMZ', 'public', 'izdm4a3ffdhgr6dch', false, 1, 2, 1, 2, '2026-11-24 13:47:49.423+00', '2026-11-24 13:47:49.423+00', '2026-12-24 13:47:49.423+00', NULL, NULL, NULL, NULL, NULL, NULL, 17, '2026-11-24 13:47:49.423+00', NULL);

INSERT INTO public.sites_switch VALUES (true, 1);

INSERT INTO public.users VALUES ('usr_puaqXY4yEjOeFSpetYMZ', 'http://localhost:38641/identity', 'LaqIB5DCjPkp0SCcJLFL', 'ada', 'ada@example.com', '2026-11-24 13:47:48.803+00', '2026-11-24 13:47:49.264+00', NULL);

SELECT pg_catalog.setval('public.audit_events_seq_seq', 7, true);

SELECT pg_catalog.setval('public.changes_seq_seq', 5, true);

ALTER TABLE ONLY public.account_group_members
    ADD CONSTRAINT account_group_members_pkey PRIMARY KEY (group_id, subject);

ALTER TABLE ONLY public.account_groups
    ADD CONSTRAINT account_groups_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.account_tombstones
    ADD CONSTRAINT account_tombstones_pkey PRIMARY KEY (subject);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (subject);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_user_id_key UNIQUE (user_id);

ALTER TABLE ONLY public.api_key_counts
    ADD CONSTRAINT api_key_counts_pkey PRIMARY KEY (type);

ALTER TABLE ONLY public.api_key_last_used
    ADD CONSTRAINT api_key_last_used_pkey PRIMARY KEY (key_id);

ALTER TABLE ONLY public.api_key_repositories
    ADD CONSTRAINT api_key_repositories_pkey PRIMARY KEY (key_id, repository_id);

ALTER TABLE ONLY public.api_key_usage
    ADD CONSTRAINT api_key_usage_pkey PRIMARY KEY (key_id, per, bucket, outcome);

ALTER TABLE ONLY public.api_key_usage_totals
    ADD CONSTRAINT api_key_usage_totals_pkey PRIMARY KEY (per, bucket, outcome);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.audit_counts
    ADD CONSTRAINT audit_counts_pkey PRIMARY KEY (hour, event, outcome);

ALTER TABLE ONLY public.audit_event_keys
    ADD CONSTRAINT audit_event_keys_pkey PRIMARY KEY (key_id, at, seq);

ALTER TABLE ONLY public.audit_events
    ADD CONSTRAINT audit_events_id_key UNIQUE (id);

ALTER TABLE ONLY public.audit_events
    ADD CONSTRAINT audit_events_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.audit_seals
    ADD CONSTRAINT audit_seals_event_id_key UNIQUE (event_id);

ALTER TABLE ONLY public.audit_seals
    ADD CONSTRAINT audit_seals_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.audit_unsealed
    ADD CONSTRAINT audit_unsealed_pkey PRIMARY KEY (event_seq);

ALTER TABLE ONLY public.blob_removals
    ADD CONSTRAINT blob_removals_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.blob_variants
    ADD CONSTRAINT blob_variants_pkey PRIMARY KEY (digest, encoding);

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT browser_sessions_digest_key UNIQUE (digest);

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT browser_sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY public.config_documents
    ADD CONSTRAINT config_documents_pkey PRIMARY KEY (name, version);

ALTER TABLE ONLY public.job_leases
    ADD CONSTRAINT job_leases_pkey PRIMARY KEY (job);

ALTER TABLE ONLY public.login_attempts
    ADD CONSTRAINT login_attempts_pkey PRIMARY KEY (state_hash);

ALTER TABLE ONLY public.notices
    ADD CONSTRAINT notices_dedupe_key_key UNIQUE (dedupe_key);

ALTER TABLE ONLY public.notices
    ADD CONSTRAINT notices_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.oidc_records
    ADD CONSTRAINT oidc_records_pkey PRIMARY KEY (model, id_hash);

ALTER TABLE ONLY public.owner_blobs
    ADD CONSTRAINT owner_blobs_pkey PRIMARY KEY (owner_kind, owner_id, digest);

ALTER TABLE ONLY public.owner_storage
    ADD CONSTRAINT owner_storage_pkey PRIMARY KEY (owner_kind, owner_id);

ALTER TABLE ONLY public.provider_signing_keys
    ADD CONSTRAINT provider_signing_keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.repositories
    ADD CONSTRAINT repositories_full_name_key_key UNIQUE (full_name_key);

ALTER TABLE ONLY public.repositories
    ADD CONSTRAINT repositories_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.setup_links_used
    ADD CONSTRAINT setup_links_used_pkey PRIMARY KEY (digest);

ALTER TABLE ONLY public.site_grants
    ADD CONSTRAINT site_grants_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.site_labels
    ADD CONSTRAINT site_labels_pkey PRIMARY KEY (label);

ALTER TABLE ONLY public.site_upload_blobs
    ADD CONSTRAINT site_upload_blobs_pkey PRIMARY KEY (upload_id, digest);

ALTER TABLE ONLY public.site_uploads
    ADD CONSTRAINT site_uploads_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.site_versions
    ADD CONSTRAINT site_versions_pkey PRIMARY KEY (site_id, number);

ALTER TABLE ONLY public.sites
    ADD CONSTRAINT sites_label_key UNIQUE (label);

ALTER TABLE ONLY public.sites
    ADD CONSTRAINT sites_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.sites_switch
    ADD CONSTRAINT sites_switch_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_issuer_subject_key UNIQUE (issuer, subject);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

CREATE INDEX account_group_members_by_subject ON public.account_group_members USING btree (subject);

CREATE UNIQUE INDEX account_groups_by_name ON public.account_groups USING btree (lower(name));

CREATE INDEX account_groups_by_parent ON public.account_groups USING btree (parent_id);

CREATE UNIQUE INDEX accounts_by_canonical_email ON public.accounts USING btree (lower((email COLLATE "C")));

CREATE INDEX api_key_last_used_in_order ON public.api_key_last_used USING btree (last_used_at DESC NULLS LAST, key_id);

CREATE INDEX api_key_repositories_by_repository ON public.api_key_repositories USING btree (repository_id);

CREATE INDEX api_key_usage_to_prune ON public.api_key_usage USING btree (per, bucket);

CREATE INDEX api_keys_by_owner ON public.api_keys USING btree (owner_user_id, created_at DESC, id) WHERE (owner_user_id IS NOT NULL);

CREATE INDEX api_keys_by_scope ON public.api_keys USING gin (scopes);

CREATE INDEX api_keys_by_time ON public.api_keys USING btree (created_at DESC, id);

CREATE INDEX api_keys_by_type ON public.api_keys USING btree (type, created_at DESC, id);

CREATE INDEX api_keys_in_expiry_order ON public.api_keys USING btree (expires_at, id);

CREATE INDEX api_keys_in_name_order ON public.api_keys USING btree (lower(name), id);

CREATE INDEX api_keys_name_parts ON public.api_keys USING gin (lower(name) public.gin_trgm_ops);

CREATE INDEX api_keys_names ON public.api_keys USING btree (lower(name) text_pattern_ops);

CREATE INDEX api_keys_of_type_in_expiry_order ON public.api_keys USING btree (type, expires_at, id);

CREATE INDEX api_keys_of_type_in_name_order ON public.api_keys USING btree (type, lower(name), id);

CREATE INDEX api_keys_to_expire ON public.api_keys USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (revoked_at IS NULL) AND (expiry_recorded_at IS NULL));

CREATE INDEX audit_events_by_actor ON public.audit_events USING btree (COALESCE(actor_id, actor_kind), at, seq);

CREATE INDEX audit_events_by_counted_request ON public.audit_events USING gin (((details -> 'requestIds'::text))) WHERE (event = 'auth.denied'::text);

CREATE INDEX audit_events_by_event ON public.audit_events USING btree (event, at, seq);

CREATE INDEX audit_events_by_outcome ON public.audit_events USING btree (outcome, at, seq);

CREATE INDEX audit_events_by_request ON public.audit_events USING btree (request_id, at, seq) WHERE (request_id IS NOT NULL);

CREATE INDEX audit_events_by_target ON public.audit_events USING btree (target_id, at, seq);

CREATE INDEX audit_events_by_time ON public.audit_events USING btree (at, seq);

CREATE INDEX blob_removals_by_end ON public.blob_removals USING btree (removed_at);

CREATE INDEX blob_variants_by_stored ON public.blob_variants USING btree (stored);

CREATE INDEX browser_sessions_by_expiry ON public.browser_sessions USING btree (expires_at);

CREATE INDEX browser_sessions_by_user ON public.browser_sessions USING btree (user_id) WHERE (ended_at IS NULL);

CREATE INDEX changes_by_time ON public.changes USING btree (at);

CREATE INDEX changes_by_tx ON public.changes USING btree (tx);

CREATE INDEX login_attempts_by_browser ON public.login_attempts USING btree (browser_hash, created_at);

CREATE INDEX login_attempts_by_expiry ON public.login_attempts USING btree (expires_at);

CREATE INDEX notices_by_user ON public.notices USING btree (user_id, created_at, id);

CREATE INDEX oidc_records_by_account ON public.oidc_records USING btree (account_id) WHERE (account_id IS NOT NULL);

CREATE INDEX oidc_records_by_expiry ON public.oidc_records USING btree (expires_at);

CREATE INDEX oidc_records_by_grant ON public.oidc_records USING btree (grant_id) WHERE (grant_id IS NOT NULL);

CREATE INDEX oidc_records_by_uid ON public.oidc_records USING btree (model, uid) WHERE (uid IS NOT NULL);

CREATE UNIQUE INDEX oidc_records_by_user_code ON public.oidc_records USING btree (model, user_code_hash) WHERE (user_code_hash IS NOT NULL);

CREATE INDEX owner_blobs_by_digest ON public.owner_blobs USING btree (digest);

CREATE INDEX owner_storage_by_bytes ON public.owner_storage USING btree (bytes DESC, owner_kind, owner_id);

CREATE INDEX repositories_name_parts ON public.repositories USING gin (full_name_key public.gin_trgm_ops);

CREATE INDEX site_grants_by_end ON public.site_grants USING btree (ends_at);

CREATE INDEX site_grants_by_site ON public.site_grants USING btree (site_id, issued_at DESC);

CREATE INDEX site_labels_by_site ON public.site_labels USING btree (site_id, minted_at);

CREATE INDEX site_upload_blobs_by_digest ON public.site_upload_blobs USING btree (digest);

CREATE INDEX site_uploads_by_end ON public.site_uploads USING btree (ends_at);

CREATE INDEX site_versions_to_encode ON public.site_versions USING btree (published_at) WHERE (encoded_at IS NULL);

CREATE INDEX sites_by_owner ON public.sites USING btree (owner_kind, owner_id, created_at DESC, id);

CREATE INDEX sites_name_parts ON public.sites USING gin (lower(name) public.gin_trgm_ops);

CREATE INDEX sites_names ON public.sites USING btree (lower(name) text_pattern_ops);

CREATE INDEX sites_never_published ON public.sites USING btree (updated_at) WHERE ((live_version IS NULL) AND (deleted_at IS NULL));

CREATE INDEX sites_public ON public.sites USING btree (created_at DESC, id) WHERE ((visibility = 'public'::text) AND (deleted_at IS NULL));

CREATE INDEX sites_public_by_end ON public.sites USING btree (COALESCE(expires_at, 'infinity'::timestamp with time zone) DESC, id) WHERE ((visibility = 'public'::text) AND (deleted_at IS NULL));

CREATE INDEX sites_public_by_name ON public.sites USING btree (lower(name) DESC, id) WHERE ((visibility = 'public'::text) AND (deleted_at IS NULL));

CREATE INDEX sites_public_by_publish ON public.sites USING btree (COALESCE(live_published_at, '-infinity'::timestamp with time zone) DESC, id) WHERE ((visibility = 'public'::text) AND (deleted_at IS NULL));

CREATE INDEX sites_public_by_size ON public.sites USING btree (live_size_bytes DESC, id) WHERE ((visibility = 'public'::text) AND (deleted_at IS NULL));

CREATE INDEX sites_taken_down ON public.sites USING btree (taken_down_at DESC, id) WHERE (taken_down_at IS NOT NULL);

CREATE INDEX sites_to_expire ON public.sites USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (deleted_at IS NULL) AND (expiry_recorded_at IS NULL));

CREATE INDEX sites_to_purge ON public.sites USING btree (restorable_until) WHERE (deleted_at IS NOT NULL);

CREATE INDEX users_by_name ON public.users USING btree (lower(name), id);

CREATE TRIGGER api_keys_counted AFTER INSERT ON public.api_keys FOR EACH ROW EXECUTE FUNCTION public.count_api_key();

CREATE TRIGGER api_keys_use_begun AFTER INSERT ON public.api_keys FOR EACH ROW EXECUTE FUNCTION public.begin_api_key_use();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_event_keys FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_audit_change();

ALTER TABLE public.audit_event_keys ENABLE ALWAYS TRIGGER append_only;

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_events FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_audit_change();

ALTER TABLE public.audit_events ENABLE ALWAYS TRIGGER append_only;

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_seals FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_audit_change();

ALTER TABLE public.audit_seals ENABLE ALWAYS TRIGGER append_only;

CREATE TRIGGER owner_blobs_added AFTER INSERT ON public.owner_blobs REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION public.add_owner_storage();

CREATE TRIGGER owner_blobs_removed AFTER DELETE ON public.owner_blobs REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION public.take_owner_storage();

CREATE TRIGGER sites_live_kept BEFORE UPDATE OF live_version ON public.sites FOR EACH ROW WHEN ((new.live_version IS NOT NULL)) EXECUTE FUNCTION public.keep_live_of_site();

ALTER TABLE ONLY public.account_group_members
    ADD CONSTRAINT account_group_members_group_id_fkey FOREIGN KEY (group_id) REFERENCES public.account_groups(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.account_group_members
    ADD CONSTRAINT account_group_members_subject_fkey FOREIGN KEY (subject) REFERENCES public.accounts(subject) ON DELETE CASCADE;

ALTER TABLE ONLY public.account_groups
    ADD CONSTRAINT account_groups_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.account_groups(id);

ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.api_key_last_used
    ADD CONSTRAINT api_key_last_used_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id);

ALTER TABLE ONLY public.api_key_repositories
    ADD CONSTRAINT api_key_repositories_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id);

ALTER TABLE ONLY public.api_key_repositories
    ADD CONSTRAINT api_key_repositories_repository_id_fkey FOREIGN KEY (repository_id) REFERENCES public.repositories(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.api_key_usage
    ADD CONSTRAINT api_key_usage_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.api_keys(id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_replaced_by_fkey FOREIGN KEY (replaced_by) REFERENCES public.api_keys(id);

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_replaces_fkey FOREIGN KEY (replaces) REFERENCES public.api_keys(id);

ALTER TABLE ONLY public.browser_sessions
    ADD CONSTRAINT browser_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.site_grants
    ADD CONSTRAINT site_grants_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.site_upload_blobs
    ADD CONSTRAINT site_upload_blobs_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES public.site_uploads(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.site_uploads
    ADD CONSTRAINT site_uploads_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.site_versions
    ADD CONSTRAINT site_versions_site_id_fkey FOREIGN KEY (site_id) REFERENCES public.sites(id) ON DELETE CASCADE;
