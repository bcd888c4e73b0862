import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findPostgres } from '../../scripts/local-servers.ts';
import { minute } from '../../src/core/clock.ts';
import { githubRule } from '../api/federation/platforms.ts';
import { isRedisMissing } from '../contract/kv-redis-server.ts';
import { exchangeForm, exchangeRowsAt } from '../id-tokens/exchange.ts';
import { openPlatform, type Platform } from '../id-tokens/platforms.ts';
import type { Weather } from './fault-proxy.ts';
import { type Member, untilHeard, watch } from './fleet.ts';
import { type LivedInFleet, startLivedInFleet, widen } from './lived-in-fleet.ts';

// Pipelines that exchange ID tokens at real processes, on real servers, also over a network that goes bad.
const bin = findPostgres();
const isMissing = process.env['CI'] !== 'true' && (bin === undefined || isRedisMissing);

type Issuer = Platform & { readonly fetches: () => number; readonly close: () => void };

/** An issuer on loopback. Counts how often its keys are fetched. */
async function openIssuer(): Promise<Issuer> {
  let fetches = 0;
  const server = createServer((request, response) => {
    const isForKeys = request.url === '/jwks';
    if (isForKeys) fetches += 1;
    const document = { issuer: url, jwks_uri: `${url}/jwks` };
    response.end(JSON.stringify(isForKeys ? { keys: [platform.publicKey] } : document));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  // Listening on TCP, so it is an address with a port.
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const platform = openPlatform('github', url);
  return { ...platform, fetches: () => fetches, close: () => void server.close() };
}

describe.skipIf(isMissing)('pipelines at two web processes', () => {
  let fleet: LivedInFleet;
  let issuer: Issuer;
  let unused: Issuer;
  beforeAll(async () => {
    if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
    [issuer, unused] = [await openIssuer(), await openIssuer()];
    fleet = await startLivedInFleet(bin, { main: join(import.meta.dirname, 'loopback-issuers.ts') });
    await trust(issuer, unused);
  });
  afterAll(async () => {
    await fleet?.stop();
    for (const one of [issuer, unused]) one?.close();
  });

  const trust = (...issuers: readonly Issuer[]) =>
    widen(fleet.ada, '/config/api-keys', ({ policy }) => ({
      ...policy,
      failedAuthenticationsPerMinute: 1_000_000,
      federation: { issuers: issuers.map((one) => one.issuer) },
    }));
  async function newKey(): Promise<string> {
    const { text, data } = await fleet.ada.api('POST', '/tokens', {
      name: 'deploys',
      scopes: ['repos:read'],
      repositoryAccess: { mode: 'all' },
      credential: 'federated',
      trust: [issuer, unused].map((one) => ({ ...githubRule, issuer: one.issuer.url })),
    });
    if (data === null) throw new Error(text);
    return data.id;
  }
  const idToken = (of = issuer, more: object = {}, header: Record<string, unknown> = {}) =>
    of.sign({ ...of.claims(Date.now(), fleet.uiUrl), ...more }, header);
  async function exchangeAt({ ports }: Member, sent: string, keyId: string) {
    const { status, text } = await fleet.ask(
      `${fleet.uiUrl}/api/v2/auth/exchange`,
      ports.web,
      {},
      { method: 'POST', ...exchangeForm(sent, keyId) },
    );
    return { status, token: String((JSON.parse(text) as { access_token?: string }).access_token) };
  }
  /** A key that both processes exchange for: each learns of a changed policy within a second. */
  async function knownKey(): Promise<string> {
    const keyId = await newKey();
    for (const web of fleet.webs)
      await expect.poll(async () => (await exchangeAt(web, await idToken(), keyId)).status).toBe(200);
    return keyId;
  }

  test('FE-03 an ID token that is sent to both at once gives one token, twenty times', async () => {
    const keyId = await knownKey();
    for (let round = 0; round < 20; round += 1) {
      const sent = await idToken();
      const answers = await Promise.all(fleet.webs.map((web) => exchangeAt(web, sent, keyId)));
      expect(answers.map(({ status }) => status)).toEqual(expect.arrayContaining([200, 400]));
      const token = answers.find(({ status }) => status === 200)?.token ?? '';
      for (const web of fleet.webs) expect(await fleet.withKey(web, token)()).toBe(200);
    }
  });

  test('FE-07 unknown keys at both cause one fetch in a minute, whose keys both use', async () => {
    const keyId = await knownKey();
    const startedAt = Date.now();
    const answers = await Promise.all(
      [...fleet.webs, ...fleet.webs, ...fleet.webs, ...fleet.webs].map(async (web) =>
        exchangeAt(web, await idToken(unused, {}, { kid: randomUUID() }), keyId),
      ),
    );
    expect(answers.filter(({ status }) => status !== 400 && status !== 503)).toEqual([]);
    for (const web of fleet.webs)
      expect((await exchangeAt(web, await idToken(unused), keyId)).status).toBe(200);
    // On a busy machine this takes more than one minute.
    const minutes = Math.ceil((Date.now() - startedAt) / minute);
    expect(unused.fetches()).toBeGreaterThan(0);
    expect(unused.fetches()).toBeLessThanOrEqual(minutes);
  });

  const endings: readonly (readonly [string, (keyId: string, token: string) => Promise<unknown>])[] = [
    ['itself', (_keyId, token) => fleet.ada.asKey(token, 'POST', '/auth/revoke-self')],
    [
      'its rule',
      async (keyId) => {
        const { data: rules } = await fleet.ada.api('GET', `/tokens/${keyId}/trust`);
        for (const { id } of rules) await fleet.ada.api('DELETE', `/tokens/${keyId}/trust/${id}`);
      },
    ],
    ['its key', (keyId) => fleet.ada.api('DELETE', `/tokens/${keyId}`)],
    [
      'its issuer',
      async () => {
        await trust(unused);
        onTestFinished(() => trust(issuer, unused));
      },
    ],
  ];
  test.each(endings)('FE-04 a token of the first ends at the second with %s', async (_what, end) => {
    const [first, second] = fleet.webs;
    const keyId = await knownKey();
    const { token } = await exchangeAt(first, await idToken(), keyId);
    const used = fleet.withKey(second, token);
    expect(await used()).toBe(200);
    await end(keyId, token);
    await expect.poll(used).toBe(401);
  });

  test('FT-08 without the key-value store, exchanges and tokens work as keys do, and a token ends', async () => {
    const [first, second] = fleet.webs;
    const keyId = await knownKey();
    fleet.kv.set({ kind: 'reset' });
    onTestFinished(() => fleet.kv.set({ kind: 'clear' }));
    const { token } = await exchangeAt(first, await idToken(), keyId);
    for (const web of [first, second]) await expect.poll(fleet.withKey(web, token)).toBe(200);
    expect((await fleet.ada.asKey(token, 'POST', '/auth/revoke-self')).status).toBe(200);
    await expect.poll(fleet.withKey(second, token)).toBe(401);
  });

  const storms: readonly (readonly [string, Weather])[] = [
    ['the database resets', { kind: 'reset' }],
    ['answers of the database are cut off', { kind: 'cut', afterBytes: 2_000 }],
  ];
  test.each(storms)(
    'FT-08 FE-08 while %s, every exchange is complete or not done, and the system recovers',
    async (what, weather) => {
      const run = what.replaceAll(' ', '_');
      // Each may exchange 60 times a minute.
      const keys = await Promise.all(Array.from({ length: 30 }, newKey));
      await knownKey();
      const acknowledged: string[] = [];
      let sent = 0;
      const exchanging = (web: Member) => async () => {
        sent += 1;
        const job = await idToken(issuer, { run_id: run, jti: `${run}-${sent}` });
        const { status, token } = await exchangeAt(web, job, keys[sent % keys.length] ?? '');
        if (status === 200) acknowledged.push(token);
        return status;
      };
      const [first, second] = fleet.webs;
      const answers = await watch({ first: exchanging(first), second: exchanging(second) }, async (heard) => {
        for (const all of Object.values(heard)) await untilHeard(all, 10, 200);
        fleet.database.set(weather);
        for (const all of Object.values(heard)) await untilHeard(all, 40);
        fleet.database.set({ kind: 'clear' });
        for (const all of Object.values(heard)) await untilHeard(all, 10, 200);
      });
      const others = Object.values(answers).flatMap((all) => all.filter((status) => status !== 200));
      expect(new Set([...others, 429, 503])).toEqual(new Set([429, 503]));
      expect(others).toContain(503);
      for (const token of acknowledged) expect(await fleet.withKey(first, token)()).toBe(200);
      const { used = 0, tokens, events } = (await exchangeRowsAt(fleet.databaseUrl, run)) ?? {};
      expect([tokens, events]).toEqual([used, used]);
      expect(used).toBeGreaterThanOrEqual(acknowledged.length);
    },
  );
});
