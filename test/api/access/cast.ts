import { createHash, randomBytes } from 'node:crypto';
import { vi } from 'vitest';
import { defaultKeyPolicy, type KeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { Browser } from '../../identity.ts';

/** What the access tests share: real access tokens, a policy that gets out of the way, and what a refusal left behind. */

/**
 * A harness whose built-in provider lives at the harness's time: oidc-provider reads Date, so Date stands still
 * where the fake clock starts. Call vi.useRealTimers() when done.
 */
export async function openFrozenHarness(options: Parameters<typeof openHarness>[0] = {}): Promise<Harness> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1) });
  return await openHarness(options);
}

const redirectUri = 'http://127.0.0.1:45123/callback';
const password = 'correct horse battery';

/** A command line connected by one person: code flow with PKCE, consent given each time. */
export function commandLine(h: Harness, name: string) {
  const browser = new Browser(h.app.web);

  async function consent(scopes: readonly string[], challenge: string): Promise<URL> {
    const query = new URLSearchParams({
      client_id: 'postern-cli',
      redirect_uri: redirectUri,
      response_type: 'code',
      // Without offline_access the next consent of the same browser would end this token.
      scope: ['openid', 'offline_access', ...scopes].join(' '),
      prompt: 'consent',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const actionOf = (text: string) => /<form method="post" action="([^"]+)"/.exec(text)?.[1] ?? '';
    let page = await browser.follow(await browser.get(`/identity/auth?${query.toString()}`));
    if (page.text.includes('type="password"')) {
      const form = { email: `${name.toLowerCase()}@example.com`, password, decision: 'sign-in' };
      page = await browser.follow(await browser.post(actionOf(page.text), form));
    }
    page = await browser.follow(await browser.post(actionOf(page.text), { decision: 'allow' }));
    return new URL(page.location ?? 'http://nowhere');
  }

  async function connect(scopes: readonly string[]): Promise<ConnectedTokens> {
    const verifier = randomBytes(32).toString('base64url');
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const callback = await consent(scopes, challenge);
    const code = callback.searchParams.get('code') ?? '';
    const form = {
      client_id: 'postern-cli',
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    };
    const answer = await new Browser(h.app.web).post('/identity/token', form, { origin: '' });
    const { access_token, refresh_token } = answer.json() as Record<string, string | undefined>;
    if (access_token === undefined || refresh_token === undefined)
      throw new Error(`No tokens: ${answer.text}`);
    return { code, access: access_token, refresh: refresh_token };
  }

  return {
    connect,
    /** An access token with exactly these API scopes. */
    token: async (scopes: readonly string[]): Promise<string> => (await connect(scopes)).access,
  };
}

type ConnectedTokens = { readonly code: string; readonly access: string; readonly refresh: string };

/** Writes a policy through the service, as an administrator would. */
export async function setPolicy(h: Harness, change: Partial<KeyPolicy>): Promise<void> {
  await h.app.services.policies.put(systemAuditContext, '*', { ...defaultKeyPolicy, ...change });
}

/** Limits so high that a table of thousands of requests never meets them. */
export const noLimits: Partial<KeyPolicy> = {
  maxActivePersonalKeysPerUser: 1_000,
  rateLimitPerMinute: 1_000_000,
  failedAuthenticationsPerMinute: 1_000_000,
};

/** A limit of changes by a person that no test reaches; no policy sets it. For openHarness(). */
export const manyChanges = { changesPerMinute: 1_000_000 };

/**
 * Every table with its number of rows and the sum of their hashes: equal before and after means nothing changed. Writing the
 * rows out and sorting them would take three times as long, and tests ask for it before and after every route. `named`: a
 * pattern of LIKE for the tables.
 */
export async function contents(h: Pick<Harness, 'database'>, named = '%'): Promise<Record<string, string>> {
  const { sql: db } = h.database;
  const tables = await sql<{ name: string }>`
    select tablename as name from pg_tables
     where schemaname = current_schema() and tablename like ${named} order by tablename`.all(db);
  const each = tables.map(
    ({ name }) => sql`select ${name}::text as name, count(*) || ' ' ||
      coalesce(sum(hash_record_extended(t, 0)), 0) as found from ${sql.id(name)} t`,
  );
  const rows = await sql<{ name: string; found: string }>`${sql.join(each, ' union all ')}`.all(db);
  return Object.fromEntries(rows.map(({ name, found }) => [name, found]));
}

/** Every row of every table as text: what someone with a copy of the database reads. */
export async function dump(h: Pick<Harness, 'database'>): Promise<string> {
  const { sql: db } = h.database;
  const tables = await sql<{ name: string }>`
    select tablename as name from pg_tables where schemaname = current_schema() order by tablename`.all(db);
  const parts: string[] = [];
  for (const { name } of tables) {
    const rows = await sql<{ row: string }>`select t::text as row from ${sql.id(name)} t`.all(db);
    parts.push(...rows.map(({ row }) => `${name}: ${row}`));
  }
  return parts.join('\n');
}

/** The route's address with ids of things that do not exist. */
export function absentPath(path: string): string {
  return path
    .replace('{owner}/{name}', 'acme/none')
    .replace('{clientId}', 'nobody')
    .replace('{number}', '1')
    .replace('{path*}', 'none.txt')
    .replaceAll(/\{\w+\}/g, 'nothingthere');
}

/** The refusals of one route (`GET /api/v2/me/tokens/:id`) in the audit log, written now instead of within the minute. */
export async function denialsOf(h: Harness, root: Person, route: string): Promise<Denied[]> {
  await h.app.services.denials.flush({ all: true });
  const found: Denied[] = [];
  let cursor: string | undefined;
  do {
    const { data, metadata } = await h.call('GET', '/audit/events', {
      as: root,
      query: {
        event: 'auth.denied',
        target: route,
        limit: '100',
        ...(cursor === undefined ? {} : { cursor }),
      },
    });
    found.push(...data);
    cursor = metadata.pagination.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

type Denied = {
  readonly reason: string;
  readonly target: { readonly kind: string; readonly id: string };
  readonly actor: { readonly kind: string; readonly id: string | null; readonly credential: string | null };
  readonly details: { readonly count: number };
};
