// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hour, minute, second } from '../../../src/core/clock.ts';
import { type ExchangeRefusal, exchangeRefusals } from '../../../src/features/keys/exchange-refusals.ts';
import type { KeyPolicy } from '../../../src/features/keys/key-policy.ts';
import { type Answer, type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { openPlatform } from '../../id-tokens/platforms.ts';
import { dump, manyChanges, setPolicy } from '../access/cast.ts';
import { setMcpPolicy } from '../mcp/agent.ts';
import { page, upload } from '../sites/uploads.ts';
import {
  exchangeOf,
  federatedKey,
  githubRule,
  githubUrl,
  gitlabRule,
  gitlabUrl,
  kubernetesRule,
  kubernetesUrl,
  trusting,
  urlEncoded,
} from './platforms.ts';

/** A pipeline exchanges the ID token of its job for a token that is a service key for some minutes. */
let h: Harness;
let other: Harness;
let root: Person;
let keyId: string;
let alone = 0;

const github = openPlatform('github', githubUrl);
const gitlab = openPlatform('gitlab', gitlabUrl);
const kubernetes = openPlatform('kubernetes', kubernetesUrl);
const setUp = (more: Partial<KeyPolicy> = {}) =>
  setPolicy(h, { ...trusting(github, gitlab, kubernetes), ...more });

beforeAll(async () => {
  h = await openHarness({
    ...manyChanges,
    outboundFetch: () => Promise.reject(new Error('The network is down.')),
  });
  other = await h.another();
  root = await h.person('Root', { admin: true });
});
beforeEach(async () => {
  alone += 1;
  await setUp();
  // A policy is in force everywhere within a second.
  await other.app.services.feed.poll();
  keyId = await newKey();
});
afterAll(async () => {
  await other.close();
  await h.close();
});

async function newKey(more: object = {}): Promise<string> {
  const body = {
    ...federatedKey([githubRule, gitlabRule, kubernetesRule]),
    name: `deploys ${alone}`,
    scopes: ['sites:write', 'repos:read'],
    ...more,
  };
  return (await h.call('POST', '/tokens', { as: root, body })).data.id;
}

const idToken = (of = github, more: object = {}, header: Record<string, unknown> = {}) =>
  of.sign({ ...of.claims(h.clock.now(), uiOrigin), ...more }, header);
const fields = (token: string, audience = keyId) => exchangeOf(token, audience);
const send = (form: Record<string, string> | string, { on = h, from = `192.0.2.${alone}` } = {}) =>
  on.call('POST', '/auth/exchange', { raw: urlEncoded(form), from });
// An answer of OAuth has no envelope.
const said = ({ text }: Answer) => JSON.parse(text) as Record<string, string>;
const outcome = (answer: Answer) =>
  answer.status < 400 ? String(answer.status) : `${answer.status} ${answer.error.code}`;
const refused = '400 invalid_grant';

async function tokenOf(platform = github, more: object = {}): Promise<string> {
  const answer = await send(fields(await idToken(platform, more)));
  if (answer.status !== 200) throw new Error(answer.text);
  return said(answer)['access_token'] ?? '';
}
const use = async (token: string, on = h) => {
  const { status, error, data } = await on.call('GET', '/auth/context', { as: `Bearer ${token}` });
  return { outcome: status < 400 ? String(status) : `${status} ${error.code}`, data };
};
const eventsOf = async (id = keyId) => {
  await h.app.services.denials.flush({ all: true });
  return (await h.call('GET', `/tokens/${id}/timeline`, { as: root })).data as {
    event: string;
    reason: string | null;
    details: Record<string, unknown>;
    requestId: string;
  }[];
};

describe('an exchange', () => {
  test('answers as RFC 8693 says, and nothing is cached', async () => {
    const answer = await send(fields(await idToken()));
    expect(said(answer)).toEqual({
      access_token: expect.stringMatching(/^app_fed_[0-9A-Za-z]{50}$/),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: 900,
    });
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test('takes the ID token also as a JWT', async () => {
    const form = { ...fields(await idToken()), subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' };
    expect(outcome(await send(form))).toBe('200');
  });

  test.each([
    [
      'GitHub Actions',
      github,
      { repository: 'octo-org/octo-repo', ref: 'refs/heads/main', run: '9876543210' },
    ],
    ['GitLab CI', gitlab, { repository: 'my-group/my-project', ref: 'main', run: '574' }],
    ['Kubernetes', kubernetes, { repository: null, ref: null, run: 'publisher-7d9f' }],
  ] as const)(
    'of %s gives a token that is the key, and says which job it was',
    async (_name, platform, job) => {
      const { data } = await use(await tokenOf(platform));
      const act = { issuer: platform.issuer.url, ...job };
      expect(data).toMatchObject({
        principal: { kind: 'service_key', id: keyId },
        authMethod: 'federated',
        credential: 'exchanged',
        keyId,
        scopes: ['sites:write', 'repos:read'],
        expiresAt: null,
        tokenExpiresAt: new Date(h.clock.now() + 15 * minute).toISOString(),
        act,
      });
      expect(await eventsOf()).toMatchObject([
        { event: 'api_key.exchanged', reason: null, details: act },
        { event: 'api_key.created' },
      ]);
    },
  );

  test('makes sites of the key, which stay when the token has ended', async () => {
    const as = `Bearer ${await tokenOf()}`;
    const { data } = await upload(
      h,
      as as never,
      { 'index.html': page('deployed') },
      { visibility: 'public' },
    );
    expect(data.owner).toMatchObject({ kind: 'service_key', id: keyId });
    h.clock.advance(16 * minute);
    const again = `Bearer ${await tokenOf()}`;
    const found = await h.call('GET', '/sites', { as: again, query: { mine: 'true' } });
    expect(found.data).toMatchObject([{ id: data.id }]);
  });

  test('works for a key whose value was erased, and for a key that still has one', async () => {
    const { data } = await h.call('POST', '/tokens', {
      as: root,
      body: { name: 'x', scopes: ['repos:read'], repositoryAccess: { mode: 'all' }, trust: [githubRule] },
    });
    expect(outcome(await send(fields(await idToken(), data.id)))).toBe('200');
    await h.call('PATCH', `/tokens/${data.id}`, { as: root, body: { credential: 'federated' } });
    expect(outcome(await send(fields(await idToken(), data.id)))).toBe('200');
  });

  test('leaves neither token in the database, nor in the log', async () => {
    const sent = await idToken();
    const token = said(await send(fields(sent)))['access_token'] ?? '';
    await use(token);
    await send(fields(sent));
    const all = `${await dump(h)}\n${h.logged.join('\n')}`;
    expect(all.includes(token)).toBe(false);
    expect(all.includes(sent.split('.')[2] ?? '')).toBe(false);
  });
});

describe('an exchanged token ends', () => {
  test('after the time of its rule, to the millisecond, on every process', async () => {
    keyId = await newKey({ trust: [{ ...githubRule, maxTtlMinutes: 5 }] });
    const token = await tokenOf();
    expect([(await use(token)).outcome, (await use(token, other)).outcome]).toEqual(['200', '200']);
    h.clock.advance(5 * minute - 1);
    expect((await use(token)).outcome).toBe('200');
    h.clock.advance(1);
    const ended = '401 invalid_credential';
    expect([(await use(token)).outcome, (await use(token, other)).outcome]).toEqual([ended, ended]);
  });

  test('no later than its key', async () => {
    keyId = await newKey({ ttlHours: 0.1 });
    const answer = await send(fields(await idToken()));
    expect(said(answer)['expires_in']).toBe(360);
    h.clock.advance(6 * minute);
    expect((await use(said(answer)['access_token'] ?? '')).outcome).toBe('401 invalid_credential');
  });

  const endings: readonly (readonly [string, string, () => Promise<unknown>])[] = [
    ['its key', '401 invalid_credential', () => h.call('DELETE', `/tokens/${keyId}`, { as: root })],
    [
      'its rule',
      '401 invalid_credential',
      async () => {
        const { data } = await h.call('GET', `/tokens/${keyId}/trust`, { as: root });
        return await h.call('DELETE', `/tokens/${keyId}/trust/${data[0].id}`, { as: root });
      },
    ],
    ['its issuer', '401 invalid_credential', () => setUp(trusting(gitlab))],
    [
      'its rule, which is removed while more are exchanged',
      '401 invalid_credential',
      async () => {
        const { data } = await h.call('GET', `/tokens/${keyId}/trust`, { as: root });
        const [answers] = await Promise.all([
          Promise.all(Array.from({ length: 5 }, async () => send(fields(await idToken())))),
          h.call('DELETE', `/tokens/${keyId}/trust/${data[0].id}`, { as: root }),
        ]);
        const late = answers.filter(({ status }) => status === 200).map(said);
        for (const { access_token: token = '' } of late)
          expect((await use(token)).outcome).toBe('401 invalid_credential');
      },
    ],
    [
      'the switch of service keys',
      '403 api_keys_disabled',
      () => setUp({ authentication: { personal: true, service: false } }),
    ],
  ];
  test.each(endings)('FE-04 with %s, on every process', async (_what, ended, end) => {
    const token = await tokenOf();
    expect([(await use(token)).outcome, (await use(token, other)).outcome]).toEqual(['200', '200']);
    await end();
    expect((await use(token)).outcome).toBe(ended);
    await other.app.services.feed.poll();
    expect((await use(token, other)).outcome).toBe(ended);
  });

  test('FE-04 for good with its issuer, also when an administrator lists the issuer again', async () => {
    const [token, another] = [await tokenOf(), await tokenOf(gitlab)];
    for (const on of [h, other]) expect((await use(token, on)).outcome).toBe('200');
    await setUp(trusting(gitlab));
    // For a second, another process may not know of the removal.
    const late = said(await send(fields(await idToken()), { on: other }))['access_token'] ?? '';
    expect(late).toMatch(/^app_fed_/);
    await setUp();
    await other.app.services.feed.poll();
    for (const on of [h, other]) {
      expect((await use(token, on)).outcome).toBe('401 invalid_credential');
      expect((await use(late, on)).outcome).toBe('401 invalid_credential');
      expect((await use(another, on)).outcome).toBe('200');
    }
    expect(outcome(await send(fields(await idToken())))).toBe('200');
  });

  test('alone by revoke-self; its key and other tokens of it stay', async () => {
    const [token, another] = [await tokenOf(), await tokenOf()];
    expect([(await use(token, other)).outcome, (await use(another)).outcome]).toEqual(['200', '200']);
    const answer = await h.call('POST', '/auth/revoke-self', { as: `Bearer ${token}` });
    expect(answer.status).toBe(200);
    const ended = '401 invalid_credential';
    expect([(await use(token)).outcome, (await use(token, other)).outcome]).toEqual([ended, ended]);
    expect((await use(another)).outcome).toBe('200');
    expect((await eventsOf())[0]).toMatchObject({ event: 'api_key.exchanged', reason: 'revoked' });
  });

  test('FE-05 when it is seen in an address, without an alarm about the key', async () => {
    const token = await tokenOf();
    const seen = await h.call('GET', `/auth/context?x=${token}`, {});
    expect([seen.status, seen.error.code]).toEqual([400, 'credential_in_url']);
    await h.app.jobs.runNow('alarms');
    expect((await use(token)).outcome).toBe('401 invalid_credential');
    expect((await eventsOf()).map(({ event }) => event)).toContain('api_key.exposed');
    const notices = (await h.call('GET', '/notices', { as: root })).data as { keyId: string }[];
    expect(notices.filter((notice) => notice.keyId === keyId)).toEqual([]);
    expect(outcome(await send(fields(await idToken())))).toBe('200');
  });

  test('FE-05 when it is seen in an address of content', async () => {
    const token = await tokenOf();
    const files = { 'index.html': page('here') };
    const { data } = await upload(h, root, files, { visibility: 'public' });
    expect((await h.open(`${data.url}/?x=${token}`)).statusCode).toBe(400);
    for (const job of ['gateway-news', 'gateway-news-desk', 'alarms']) await h.app.jobs.runNow(job);
    expect((await use(token)).outcome).toBe('401 invalid_credential');
  });

  test('FE-05 when an upload contains it', async () => {
    const token = await tokenOf();
    const files = { 'index.html': page(`my token is ${token}`) };
    const { status, error } = await upload(h, root, files, { visibility: 'private' });
    expect([status, error.code]).toEqual([422, 'credential_in_content']);
    await h.app.jobs.runNow('alarms');
    expect((await use(token)).outcome).toBe('401 invalid_credential');
  });

  test('and is then removed, with the ids of used ID tokens', async () => {
    await tokenOf();
    const rows = async () =>
      (await dump(h)).split('\n').filter((row) => /^(?:exchanged_tokens|used_id_tokens):/.test(row));
    expect(await rows()).not.toEqual([]);
    h.clock.advance(2 * hour);
    await h.app.jobs.runNow('exchanged-tokens');
    expect(await rows()).toEqual([]);
  });
});

test('an exchanged token is refused where a key is: by session routes and by /mcp', async () => {
  await setMcpPolicy(h);
  const as = `Bearer ${await tokenOf()}`;
  const session = await h.call('GET', '/me/tokens', { as });
  expect([session.status, session.error.code]).toEqual([403, 'interactive_auth_required']);
  const managed = await h.call('GET', '/tokens', { as });
  expect([managed.status, managed.error.code]).toEqual([403, 'interactive_auth_required']);
  const changed = `${as.slice(0, -1)}${as.endsWith('0') ? '1' : '0'}`;
  expect((await h.call('GET', '/auth/context', { as: changed })).status).toBe(401);
  const mcp = await h.app.web.inject({
    method: 'POST',
    url: '/mcp',
    headers: { host: 'localhost:3000', authorization: as, 'content-type': 'application/json' },
    payload: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  expect([mcp.statusCode, JSON.parse(mcp.payload).error.message]).toEqual([
    401,
    'The MCP endpoint does not accept API keys.',
  ]);
  const scope = await h.call('GET', '/environments', { as });
  expect([scope.status, scope.error.code]).toEqual([403, 'forbidden_scope']);
});

describe('an ID token', () => {
  test('FE-03 T63 is exchanged once where the rule says so, however many processes get it at once', async () => {
    const form = fields(await idToken());
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => send(form, { on: at % 2 === 0 ? h : other })),
    );
    expect(answers.map(outcome).toSorted()).toEqual(['200', ...Array(19).fill(refused)]);
    const second = await newKey();
    expect(outcome(await send({ ...form, audience: second }))).toBe(refused);
    expect((await eventsOf()).map(({ reason }) => reason)).toContain('replayed');
  });

  test('FE-03 is remembered longer than it is accepted, because an exchange may have to wait', async () => {
    await send(fields(await idToken()));
    const isRemembered = async () => {
      await h.app.jobs.runNow('exchanged-tokens');
      return (await dump(h)).includes('\nused_id_tokens:');
    };
    // The ID token lasts ten minutes, and clocks may differ by half of one.
    h.clock.advance(11 * minute + 29 * second);
    expect(await isRemembered()).toBe(true);
    h.clock.advance(second);
    expect(await isRemembered()).toBe(false);
  });

  test('of a platform that gives one for a job is exchanged again', async () => {
    const form = fields(await idToken(gitlab));
    expect([outcome(await send(form)), outcome(await send(form))]).toEqual(['200', '200']);
  });

  test('that expired is not exchanged again after its id was removed', async () => {
    const form = fields(await idToken(github, { exp: h.clock.now() / second + 100 * hour }));
    expect(outcome(await send(form))).toBe('200');
    h.clock.advance(2 * hour);
    await h.app.jobs.runNow('exchanged-tokens');
    expect(outcome(await send(form))).toBe(refused);
  });

  const refusals: readonly (readonly [ExchangeRefusal, () => Promise<string>])[] = [
    ['unknown_issuer', () => idToken(openPlatform('github', 'https://evil.example.com'))],
    ['bad_signature', () => idToken(openPlatform('github', githubUrl))],
    ['bad_signature', async () => 'not.a.token'],
    ['audience', () => idToken(github, { aud: 'https://github.com/octo-org' })],
    ['stale', () => idToken(github, { iat: h.clock.now() / second - 601 })],
    ['claim', () => idToken(github, { repository_id: '1' })],
    ['claim', () => idToken(github, { event_name: 'pull_request' })],
  ];
  test.each(refusals)(
    'FE-02 is refused for the reason %s, which only administrators read',
    async (reason, sign) => {
      const answer = await send(fields(await sign()));
      expect(outcome(answer)).toBe(refused);
      const { request_id: requestId = '', ...rest } = said(answer);
      expect(rest).toEqual({
        error: 'invalid_grant',
        error_description:
          'The ID token was not accepted for this key. An administrator finds the reason by the request id.',
      });
      await h.app.services.denials.flush({ all: true });
      const ofRoot = await h.call('GET', `/me/refusals/${requestId}`, { as: root });
      const [message, hint] = exchangeRefusals[reason];
      expect(ofRoot.data).toMatchObject({
        requestId,
        keyId,
        code: 'invalid_grant',
        status: 400,
        message,
        hint,
      });
      expect((await eventsOf())[0]).toMatchObject({ event: 'api_key.exchange_refused', reason, requestId });
      const eve = await h.person(`Eve${alone}`);
      expect((await h.call('GET', `/me/refusals/${requestId}`, { as: eve })).status).toBe(404);
    },
  );

  test('FE-02 each of several that are refused in a minute is found by its request id', async () => {
    const answers = [];
    for (let count = 0; count < 4; count += 1) {
      answers.push(await send(fields(await idToken(github, { repository_id: '1' }))));
      if (count === 0) await h.app.services.denials.flush();
    }
    await h.app.services.denials.flush({ all: true });
    for (const { headers } of answers) {
      const requestId = headers['x-request-id'];
      const { data } = await h.call('GET', `/me/refusals/${requestId}`, { as: root });
      expect(data).toMatchObject({ requestId, keyId, code: 'invalid_grant' });
    }
  });

  test('FE-02 for a key of a person shows that person no reason', async () => {
    const eve = await h.person(`Eve${alone}`);
    const key = await h.key(eve);
    await send(fields(await idToken(), key.id));
    await h.app.services.denials.flush({ all: true });
    const { data } = await h.call('GET', `/me/tokens/${key.id}/timeline`, { as: eve });
    expect(data[0]).toMatchObject({ event: 'api_key.exchange_refused', reason: null });
    expect((await eventsOf(key.id))[0]).toMatchObject({ reason: 'key_inactive' });
  });

  test('is refused for a key that is a person’s, unknown, ended or switched off', async () => {
    const personal = await h.key(root);
    const ended = await newKey();
    await h.call('DELETE', `/tokens/${ended}`, { as: root });
    for (const audience of [personal.id, ended, '000000000000'])
      expect(outcome(await send(fields(await idToken(), audience)))).toBe(refused);
    await setUp({ authentication: { personal: true, service: false } });
    expect(outcome(await send(fields(await idToken())))).toBe(refused);
    expect((await eventsOf())[0]).toMatchObject({ reason: 'key_inactive' });
  });

  test('of an issuer whose keys cannot be fetched is answered with 503', async () => {
    await setUp({ federation: { issuers: [github.issuer] } });
    const answer = await send(fields(await idToken()));
    expect(outcome(answer)).toBe('503 temporarily_unavailable');
    const metrics = await h.app.services.metrics.registry.metrics();
    expect(metrics).toContain('postern_token_exchanges_total{result="unavailable"} 1');
    expect(answer.headers['retry-after']).toBeDefined();
  });
});

describe('a request that is no exchange', () => {
  test.each([
    ['another grant', { grant_type: 'client_credentials' }, '400 unsupported_grant_type'],
    [
      'another type of token',
      { subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' },
      '400 invalid_request',
    ],
    ['no ID token', { subject_token: '' }, '400 invalid_request'],
    ['no key id', { audience: 'https://postern.example.com' }, '400 invalid_request'],
    ['a scope', { scope: 'sites:read' }, '400 invalid_request'],
    ['an actor', { actor_token: 'x' }, '400 invalid_request'],
  ])('with %s is refused as RFC 6749 says', async (_what, more, expected) => {
    const answer = await send({ ...fields('a.b.c'), ...more });
    expect(outcome(answer)).toBe(expected);
    expect(said(answer)['error_description']).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
    expect(said(answer)['request_id']).toBe(answer.headers['x-request-id']);
  });

  test('is also one with a repeated field, with JSON, or with too much', async () => {
    const form = new URLSearchParams(fields('a.b.c')).toString();
    expect(outcome(await send(`${form}&audience=${keyId}`))).toBe('400 invalid_request');
    const json = await h.call('POST', '/auth/exchange', { body: fields('a.b.c') });
    expect(outcome(json)).toBe('415 invalid_request');
    expect(outcome(await send(fields('x'.repeat(70_000))))).toBe('413 invalid_request');
  });
});

describe('exchanges are limited', () => {
  test('bad ones by address, as bad keys are', async () => {
    await setUp({ failedAuthenticationsPerMinute: 2 });
    const bad = () => send(fields('not.a.token'));
    expect([outcome(await bad()), outcome(await bad())]).toEqual([refused, refused]);
    const answer = await bad();
    expect(outcome(answer)).toBe('429 slow_down');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(outcome(await send(fields(await idToken())))).toBe('200');
  });

  test('bad ones of a throttled address, so that those for many keys do not fill the audit log', async () => {
    await setUp({ failedAuthenticationsPerMinute: 2 });
    const ids = [1, 2, 3, 4, 5].map((at) => `throttled${String(alone).padStart(2, '0')}${at}`);
    const answers = [];
    for (const id of ids) answers.push(outcome(await send(fields('not.a.token', id))));
    expect(answers).toEqual([refused, refused, ...Array(3).fill('429 slow_down')]);
    await h.app.services.denials.flush({ all: true });
    const query = { event: 'api_key.exchange_refused', limit: '100' };
    const { data } = await h.call('GET', '/audit/events', { as: root, query });
    const named = data.map(({ target }: { target: { id: string } }) => target.id);
    expect(ids.map((id) => named.includes(id))).toEqual([true, true, false, false, false]);
  });

  test('good ones to 60 a minute for each key', async () => {
    const form = fields(await idToken(gitlab));
    for (let count = 0; count < 60; count += 1) expect(outcome(await send(form))).toBe('200');
    const answer = await send(form);
    expect(outcome(answer)).toBe('429 slow_down');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    h.clock.advance(minute + 100);
    expect(outcome(await send(form))).toBe('200');
  });

  test('used ID tokens do not count for the key', async () => {
    await setUp({ rateLimitPerMinute: 3 });
    const form = fields(await idToken());
    expect(outcome(await send(form))).toBe('200');
    for (let count = 0; count < 5; count += 1) expect(outcome(await send(form))).toBe(refused);
    expect(outcome(await send(fields(await idToken())))).toBe('200');
  });

  test('good ones also by the limit of the key, which they use up', async () => {
    await setUp({ rateLimitPerMinute: 3 });
    const token = await tokenOf();
    expect([(await use(token)).outcome, (await use(token)).outcome]).toEqual(['200', '200']);
    expect(outcome(await send(fields(await idToken())))).toBe('429 slow_down');
    expect((await use(token)).outcome).toBe('429 rate_limited');
  });
});
