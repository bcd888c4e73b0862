import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { day } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/ids.ts';
import {
  generateEnvironmentLabel,
  serviceLabel,
} from '../../src/features/environments/environment/labels.ts';
import { changeStore } from '../../src/platform/database/change-feed.ts';
import { sql } from '../../src/platform/database/sql.ts';
import { contentUrl, type Harness, type Person } from '../harness.ts';

/** Environments as rows, because these tests are about what the gateway does with them. */
export const environmentCookie = '__Host-postern_environment_grant';

export type Service = {
  kind?: 'static' | 'process' | 'image' | 'postgres' | 'external';
  files?: Record<string, string>;
  spa?: boolean;
  address?: string | null;
  status?: string;
  reason?: string;
  isExposed?: boolean;
  routes?: Record<string, string>;
};

export type Made = { readonly id: string; readonly label: string; urlOf(service: string): string };

export async function switchEnvironments(
  h: Harness,
  admin: Person,
  change: Record<string, unknown> = { enabled: true },
): Promise<void> {
  const { data } = await h.call('GET', '/config/api-environments', { as: admin });
  const put = await h.call('PUT', '/config/api-environments', {
    as: admin,
    headers: { 'if-match': '*' },
    body: { ...data.policy, ...change },
  });
  expect(put.status).toBe(200);
}

export async function environmentOf(
  h: Harness,
  creator: Person | 'service_key',
  {
    access = 'public',
    services = {},
    status = 'deployed',
    ttlMs = day,
    statusMessage = null,
  }: {
    access?: 'owner' | 'members' | 'public';
    services?: Record<string, Service>;
    status?: string;
    ttlMs?: number;
    statusMessage?: string | null;
  } = {},
): Promise<Made> {
  const id = `env_${randomBytes(10).toString('hex')}`;
  const { addresses } = h.app.services.environmentServices;
  const label = generateEnvironmentLabel(systemRandom);
  const now = new Date(h.clock.now());
  const [kind, creatorId] = creator === 'service_key' ? ['service_key', 'key_1'] : ['user', creator.user.id];
  await sql`
    insert into environments (id, uuid, repository_id, repository, branch, creator_kind, creator_id, trigger, access, label,
      services, env, init_env, deploy_enabled, auto_track, track_default_branches, status, status_message, created_at,
      updated_at, expires_at)
    values (${id}, ${label}, 'rep_1', 'acme/shop', 'main', ${kind}, ${creatorId}, 'api', ${access}, ${label}, '[]', '{}',
      '{}', true, false, false, ${status}, ${statusMessage}, ${now}, ${now}, ${new Date(h.clock.now() + ttlMs)})`.run(
    h.database.sql,
  );
  await sql`
    insert into environment_labels (label, environment_id, created_at) values (${label}, ${id}, ${now})`.run(
    h.database.sql,
  );
  let position = 0;
  for (const [name, service] of Object.entries(services)) {
    const artifactId = service.files === undefined ? null : await artifactOf(h, service.files);
    position += 1;
    await sql`
      insert into environment_services (environment_id, name, position, kind, status, reason, is_exposed, routes, spa,
        artifact_id, address)
      values (${id}, ${name}, ${position}, ${service.kind ?? 'static'}, ${service.status ?? 'ready'},
        ${service.reason ?? null}, ${service.isExposed ?? true}, ${JSON.stringify(service.routes ?? {})}::jsonb,
        ${service.spa ?? false}, ${artifactId}, ${service.address ?? null})`.run(h.database.sql);
  }
  await announce(h, id);
  return { id, label, urlOf: (service) => `${addresses.urlOf(service, label)}/` };
}

export function urlOf(label: string): string {
  const { protocol, host } = new URL(contentUrl);
  return `${protocol}//${label}.${host}/`;
}

/** A label that no Environment ever had. */
export function unusedUrl(service = 'web'): string {
  return urlOf(serviceLabel(service, generateEnvironmentLabel(systemRandom)));
}

/** Changes the row, as a change of its access or its state does, and reports it to every process. */
export async function change(h: Harness, id: string, set: Record<string, unknown>): Promise<void> {
  for (const [column, value] of Object.entries(set))
    await sql`update environments set ${sql.id(column)} = ${value}, revision = revision + 1 where id = ${id}`.run(
      h.database.sql,
    );
  await announce(h, id);
}

export async function changeAccess(h: Harness, made: Made, access: string): Promise<string> {
  const label = generateEnvironmentLabel(systemRandom);
  const now = new Date(h.clock.now());
  await sql`update environment_labels set retired_at = ${now} where label = ${made.label}`.run(
    h.database.sql,
  );
  await sql`
    insert into environment_labels (label, environment_id, created_at) values (${label}, ${made.id}, ${now})`.run(
    h.database.sql,
  );
  await change(h, made.id, { access, label });
  return label;
}

export async function setService(
  h: Harness,
  id: string,
  name: string,
  set: Record<string, unknown>,
): Promise<void> {
  for (const [column, value] of Object.entries(set))
    await sql`
      update environment_services set ${sql.id(column)} = ${value}
       where environment_id = ${id} and name = ${name}`.run(h.database.sql);
  await announce(h, id);
}

async function announce(h: Harness, subject: string): Promise<void> {
  await changeStore(h.database.sql, h.clock).publish({ topic: 'environment', subject });
  await h.app.services.feed.poll();
  await h.settle();
}

async function artifactOf(h: Harness, files: Record<string, string>): Promise<string> {
  const id = `art_${randomBytes(10).toString('hex')}`;
  const manifest: [string, string, number][] = [];
  for (const [path, text] of Object.entries(files).sort(([one], [other]) => (one < other ? -1 : 1))) {
    const { digest, size } = await h.blobs.write(Readable.from([Buffer.from(text)]));
    manifest.push([path, digest, size]);
  }
  const now = new Date(h.clock.now());
  await sql`
    insert into artifacts (id, repository_id, engine, platform, digest, kind, manifest, file_count, size_bytes, created_at,
      used_at)
    values (${id}, 'rep_1', 'local', 'linux', ${id}, 'static', ${JSON.stringify(manifest)}::jsonb, ${manifest.length}, 1,
      ${now}, ${now})`.run(h.database.sql);
  return id;
}
