import { afterEach, beforeEach, expect, test } from 'vitest';
import { second } from '../../../src/core/clock.ts';
import { memorySource } from '../../../src/features/rate-limit/rate-limit.ts';
import { FakeClock } from '../../clock.ts';
import { openTestDatabase } from '../../database.ts';
import { type Harness, openHarness, uiOrigin } from '../../harness.ts';
import { openPlatform } from '../../id-tokens/platforms.ts';
import { setPolicy } from '../access/cast.ts';
import { fallibleDatabase, fallibleSource } from '../limits/outages.ts';
import { githubRule, githubUrl } from './platforms.ts';

/** Exchanges and exchanged tokens while a store is unavailable: 503, and never a wrong yes. */
const database = { isCut: false };
const counters = { isCut: false };
const github = openPlatform('github', githubUrl);
let h: Harness;
let keyId: string;
beforeEach(async () => {
  h = await openHarness({
    database: fallibleDatabase(await openTestDatabase(), database),
    limitSource: fallibleSource(memorySource({ clock: new FakeClock() }), counters),
  });
  const jwks = { keys: [github.publicKey] };
  await setPolicy(h, { federation: { issuers: [{ ...github.issuer, jwks }] } });
  const root = await h.person('Root', { admin: true });
  const body = {
    name: 'deploys',
    scopes: ['repos:read'],
    repositoryAccess: { mode: 'all' },
    credential: 'federated',
    trust: [githubRule],
  };
  keyId = (await h.call('POST', '/tokens', { as: root, body })).data.id;
});
afterEach(async () => {
  database.isCut = false;
  counters.isCut = false;
  await h.close();
});

async function exchange() {
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: await github.sign(github.claims(h.clock.now(), uiOrigin)),
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    audience: keyId,
  });
  const raw = { type: 'application/x-www-form-urlencoded', bytes: form.toString() };
  const answer = await h.call('POST', '/auth/exchange', { raw });
  return { ...answer, token: String((JSON.parse(answer.text) as { access_token?: string }).access_token) };
}
const use = async (token: string) => {
  const { status, error } = await h.call('GET', '/auth/context', { as: `Bearer ${token}` });
  return status < 400 ? String(status) : `${status} ${error.code}`;
};

test('without the database there is no exchange, and a token is used only while its end would be seen', async () => {
  const { token } = await exchange();
  expect(await use(token)).toBe('200');
  database.isCut = true;
  const { status, error } = await exchange();
  expect([status, error.code]).toEqual([503, 'temporarily_unavailable']);
  counters.isCut = true;
  h.clock.advance(2 * second);
  expect(await use(token)).toBe('503 store_unavailable');
  database.isCut = false;
  expect(await use(token)).toBe('200');
});

test('without the counters, exchanges and tokens work as keys do', async () => {
  counters.isCut = true;
  const { status, token } = await exchange();
  expect(status).toBe(200);
  expect(await use(token)).toBe('200');
});
