import { afterEach, beforeEach, expect, test } from 'vitest';
import { minute, second } from '../../../src/core/clock.ts';
import { AppError } from '../../../src/core/errors.ts';
import { memorySource } from '../../../src/features/rate-limit/rate-limit.ts';
import type { Database } from '../../../src/platform/database/database.ts';
import type { Sql } from '../../../src/platform/database/sql.ts';
import { FakeClock } from '../../clock.ts';
import { openTestDatabase } from '../../database.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { exchange, exchangeRows } from '../../id-tokens/exchange.ts';
import { openPlatform } from '../../id-tokens/platforms.ts';
import { setPolicy } from '../access/cast.ts';
import { fallibleSource } from '../limits/outages.ts';
import { githubRule, githubUrl } from './platforms.ts';

/** Exchanges and exchanged tokens while a store is unavailable: 503, and never a wrong yes. */
const database = { answersLeft: Infinity };
const counters = { isCut: false };
const github = openPlatform('github', githubUrl);
const issuers = [github.issuer];
let h: Harness;
let root: Person;
let keyId: string;
beforeEach(async () => {
  h = await openHarness({
    database: breakingDatabase(await openTestDatabase()),
    limitSource: fallibleSource(memorySource({ clock: new FakeClock() }), counters),
    outboundFetch: async (url) =>
      Response.json(
        url.endsWith('/jwks')
          ? { keys: [github.publicKey] }
          : { issuer: githubUrl, jwks_uri: `${githubUrl}/jwks` },
      ),
  });
  await setPolicy(h, { federation: { issuers } });
  root = await h.person('Root', { admin: true });
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
  database.answersLeft = Infinity;
  counters.isCut = false;
  await h.close();
});

/** Answers as many statements as are left, and then none. A commit is the last statement of its transaction. */
function breakingDatabase(whole: Database): Database {
  function answer(): void {
    database.answersLeft -= 1;
    if (database.answersLeft < 0) throw new AppError('store_unavailable');
  }
  const breaking = (inner: Sql): Sql => ({
    run(...statement) {
      answer();
      return inner.run(...statement);
    },
  });
  return {
    ...whole,
    sql: breaking(whole.sql),
    async tx(work) {
      answer();
      const result = await whole.tx((inner) => work(breaking(inner)));
      // Committed, but the process does not learn it.
      answer();
      return result;
    },
  };
}

const idTokenOfJob = (more: object = {}) =>
  github.sign({ ...github.claims(h.clock.now(), uiOrigin), ...more });
const use = async (token: string, on = h) => {
  const { status, error } = await on.call('GET', '/auth/context', { as: `Bearer ${token}` });
  return status < 400 ? String(status) : `${status} ${error.code}`;
};

test('FE-08 an exchange that loses the database at any of its statements is 503, and leaves nothing or all of it', async () => {
  const retries: string[] = [];
  let exchanged = 0;
  for (let answers = 0; ; answers += 1) {
    // So that each attempt may fetch the keys of the issuer.
    h.clock.advance(minute);
    const idToken = await idTokenOfJob({ run_id: '1', jti: `1-${answers}` });
    database.answersLeft = answers;
    const broken = await exchange(h, idToken, keyId);
    database.answersLeft = Infinity;
    if (broken.outcome === '200') break;
    expect([answers, broken]).toEqual([answers, { outcome: '503 temporarily_unavailable', token: '' }]);
    h.clock.advance(minute);
    const { outcome } = await exchange(h, idToken, keyId);
    retries.push(outcome);
    // Either the broken exchange was committed, or the second one was.
    exchanged += 1;
    expect(await exchangeRows('1').first(h.database.sql)).toEqual({
      used: exchanged,
      tokens: exchanged,
      events: exchanged,
    });
  }
  // Only the lost answer to the commit leaves a token, which nobody has.
  const [last, ...before] = retries.toReversed();
  expect([last, new Set(before)]).toEqual(['400 invalid_grant', new Set(['200'])]);
  expect(before.length).toBeGreaterThan(5);
});

test('without the database there is no exchange, and a token is used only while its end would be seen', async () => {
  const { token } = await exchange(h, await idTokenOfJob(), keyId);
  expect(await use(token)).toBe('200');
  database.answersLeft = 0;
  expect((await exchange(h, await idTokenOfJob(), keyId)).outcome).toBe('503 temporarily_unavailable');
  counters.isCut = true;
  h.clock.advance(2 * second);
  expect(await use(token)).toBe('503 store_unavailable');
  database.answersLeft = Infinity;
  expect(await use(token)).toBe('200');
});

test('without the counters, exchanges and tokens work as keys do', async () => {
  counters.isCut = true;
  const { outcome, token } = await exchange(h, await idTokenOfJob(), keyId);
  expect(outcome).toBe('200');
  expect(await use(token)).toBe('200');
});

const ended = '401 invalid_credential';
test.each([
  ['its key', ended, () => h.call('DELETE', `/tokens/${keyId}`, { as: root })],
  [
    'its rule',
    ended,
    async () => {
      const { data } = await h.call('GET', `/tokens/${keyId}/trust`, { as: root });
      await h.call('DELETE', `/tokens/${keyId}/trust/${data[0].id}`, { as: root });
    },
  ],
  ['its issuer', ended, () => setPolicy(h, {})],
  [
    'the switch of service keys',
    '403 api_keys_disabled',
    () => setPolicy(h, { federation: { issuers }, authentication: { personal: true, service: false } }),
  ],
  ['revoke-self', ended, (token: string) => h.call('POST', '/auth/revoke-self', { as: `Bearer ${token}` })],
] as const)(
  'FE-04 without the counters, a token ends with %s in another process, which hears no change, within a second',
  async (_what, expected, end) => {
    counters.isCut = true;
    const other = await h.another();
    const { token } = await exchange(h, await idTokenOfJob(), keyId);
    expect(await use(token, other)).toBe('200');
    await end(token);
    expect(await use(token)).toBe(expected);
    h.clock.advance(second + 1);
    expect(await use(token, other)).toBe(expected);
    await other.close();
  },
);
