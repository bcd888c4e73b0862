import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { exchangedToken } from './exchange.ts';

const keyId = '9sWm3RtY6bHc';
const secret = 'secret-of-the-runner';

let folder: string;
let stops: (() => unknown)[] = [];
/** What Postern was sent, and how it answers. */
let forms: Record<string, string>[];
let postern: { status: number; body: unknown };
let origin: string;
let now: number;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-exchange-'));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  forms = [];
  now = 1_000_000;
  postern = { status: 200, body: undefined };
  origin = await listening(async (request) => {
    forms.push(Object.fromEntries(new URLSearchParams(await text(request))));
    const token = { access_token: `token ${forms.length}`, expires_in: 900 };
    return { ...postern, body: postern.body ?? token };
  });
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** An ID token, in which only the audience and the name of the job can be read. */
const jwt = (name: string, aud: unknown = origin) =>
  `head.${Buffer.from(JSON.stringify({ name, aud })).toString('base64url')}.signature`;

type Reply = { status?: number; headers?: Record<string, string>; body?: unknown };

async function listening(answer: (request: IncomingMessage) => Promise<Reply>): Promise<string> {
  const server = createServer((request, response) => {
    void answer(request).then(({ status = 200, headers = {}, body }) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => server.close());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : undefined}`;
}

/** A runner that gives the job another ID token each time. */
async function runner(reply: Reply = {}) {
  const asked: { url: string | undefined; authorization: string | undefined }[] = [];
  const address = await listening(async ({ url, headers: { authorization } }) => {
    asked.push({ url, authorization });
    return { body: { count: 1, value: jwt(`job ${asked.length}`) }, ...reply };
  });
  const env = {
    GITHUB_ACTIONS: 'true',
    ACTIONS_ID_TOKEN_REQUEST_URL: `${address}/token?api-version=2.0`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret,
  };
  return { asked, env };
}

function tokensWith(env: Record<string, string>, id = keyId) {
  const platform = {
    env: { POSTERN_KEY_ID: id, ...env },
    err: () => undefined,
    wait: async () => undefined,
    now: () => now,
  };
  const token = exchangedToken(origin, platform);
  if (token === undefined) throw new Error('The key has no id.');
  return token;
}
const sent = () => forms.map(({ subject_token: idToken }) => idToken);

test('without POSTERN_KEY_ID there is nothing to exchange', () => {
  const platform = { env: {}, err: () => undefined, wait: async () => undefined, now: () => now };
  expect(exchangedToken(origin, platform)).toBeUndefined();
});

test('GitHub: the runner gives an ID token for this server, which becomes a token of the key', async () => {
  const { asked, env } = await runner();
  expect(await tokensWith(env)()).toBe('token 1');
  expect(asked).toEqual([
    {
      url: `/token?api-version=2.0&audience=${encodeURIComponent(origin)}`,
      authorization: `Bearer ${secret}`,
    },
  ]);
  expect(forms).toEqual([
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: jwt('job 1'),
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      audience: keyId,
    },
  ]);
});

test('a token is used until less than a minute remains, and then there is another exchange', async () => {
  const { env } = await runner();
  const token = tokensWith(env);
  await token();
  now += 839_999;
  expect(await token()).toBe('token 1');
  now += 1;
  expect(await token()).toBe('token 2');
  expect(sent()).toEqual([jwt('job 1'), jwt('job 2')]);
});

test('a token that lasts only a minute is used for half of it', async () => {
  const { env } = await runner();
  postern.body = { access_token: 'short', expires_in: 60 };
  const token = tokensWith(env);
  await token();
  now += 29_999;
  await token();
  expect(forms).toHaveLength(1);
  now += 1;
  await token();
  expect(forms).toHaveLength(2);
});

test('requests at the same time share one exchange, and one that failed is not the last', async () => {
  const { env } = await runner();
  const token = tokensWith(env);
  const refused = { status: 400, body: { error: 'invalid_grant' } };
  postern = refused;
  const failed = await Promise.allSettled([token(), token()]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  postern = { status: 200, body: undefined };
  expect(await Promise.all([token(), token(), token()])).toEqual(['token 2', 'token 2', 'token 2']);
});

test('GitLab: the variable has the ID token', async () => {
  expect(await tokensWith({ POSTERN_ID_TOKEN: `${jwt('of it')}\n` })()).toBe('token 1');
  expect(sent()).toEqual([jwt('of it')]);
});

test('Kubernetes: the file is read at each exchange, because its token changes', async () => {
  const file = join(folder, 'token');
  await writeFile(file, `${jwt('first')}\n`);
  const token = tokensWith({ POSTERN_ID_TOKEN_FILE: file });
  await token();
  await writeFile(file, jwt('second', [origin]));
  now += 900_000;
  await token();
  expect(sent()).toEqual([jwt('first'), jwt('second', [origin])]);
});

test('what the job names is used before what the runner offers', async () => {
  const { asked, env } = await runner();
  await tokensWith({ ...env, POSTERN_ID_TOKEN: jwt('of it') })();
  expect([asked, sent()]).toEqual([[], [jwt('of it')]]);
});

test('a refusal ends with 4, and says where an administrator reads the reason', async () => {
  postern = { status: 400, body: { error: 'invalid_grant', error_description: 'No.', request_id: 'req-7' } };
  await expect(tokensWith({ POSTERN_ID_TOKEN: jwt('of it') })()).rejects.toMatchObject({
    code: 'invalid_grant',
    exitCode: 4,
    message: `The ID token of this job was not accepted for the key ${keyId}.`,
    hint: `Only an administrator can read the reason: ${origin}/settings/refusals?requestId=req-7`,
    requestId: 'req-7',
  });
});

test.each([
  [429, 'slow_down', 5],
  [503, 'temporarily_unavailable', 7],
  [400, 'invalid_request', 2],
])('the status %i with %s ends with %i and the text of the server', async (status, error, exitCode) => {
  postern = { status, body: { error, error_description: 'Later.', request_id: 'req-7' } };
  await expect(tokensWith({ POSTERN_ID_TOKEN: jwt('of it') })()).rejects.toMatchObject({
    code: error,
    exitCode,
    message: 'Later.',
    requestId: 'req-7',
  });
});

test('a server that accepts the ID token and returns no token is an error', async () => {
  postern.body = { data: null };
  await expect(tokensWith({ POSTERN_ID_TOKEN: jwt('of it') })()).rejects.toMatchObject({ exitCode: 1 });
});

test.each([
  ['GitHub', { GITHUB_ACTIONS: 'true' }, 'id-token: write'],
  ['GitLab', { GITLAB_CI: 'true' }, 'id_tokens: { POSTERN_ID_TOKEN: { aud: "http://127.0.0.1'],
  ['another platform', {}, 'POSTERN_ID_TOKEN_FILE'],
])('a job of %s without an ID token ends with 4, and learns how to get one', async (_, env, fix) => {
  await expect(tokensWith(env)()).rejects.toMatchObject({
    code: 'no_id_token',
    exitCode: 4,
    hint: expect.stringContaining(fix),
  });
  expect(forms).toEqual([]);
});

test.each([
  ['refuses', { status: 403, body: {} }, 4],
  ['is unavailable', { status: 502, body: '' }, 7],
  ['redirects', { status: 302, headers: { location: 'http://127.0.0.1:9/' }, body: '' }, 4],
  ['answers with something else', { body: 'nothing' }, 4],
  ['answers with another value', { body: { value: `${secret} ` } }, 4],
  ['answers with too much', { body: { value: 'a.b.c', padding: 'x'.repeat(70_000) } }, 4],
  ['answers with a token that is too long', { body: { value: `a.${'b'.repeat(16_384)}.c` } }, 4],
])('a runner that %s gives no ID token', async (_, reply, exitCode) => {
  const { env } = await runner(reply);
  const failure: unknown = await tokensWith(env)().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'no_id_token', exitCode });
  expect(String(failure)).not.toContain(secret);
  expect(forms).toEqual([]);
});

test('a runner that cannot be reached ends with 7', async () => {
  const { env } = await runner();
  stops.pop()?.();
  await expect(tokensWith(env)()).rejects.toMatchObject({ code: 'unreachable', exitCode: 7 });
});

test.each([
  ['two sources', { POSTERN_ID_TOKEN: 'a.b.c', POSTERN_ID_TOKEN_FILE: '/token' }],
  ['a file that cannot be read', { POSTERN_ID_TOKEN_FILE: tmpdir() }],
  [
    'an address that the network can read',
    { ACTIONS_ID_TOKEN_REQUEST_URL: 'http://example.com/', ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret },
  ],
  [
    'a token of the runner with a line break',
    { ACTIONS_ID_TOKEN_REQUEST_URL: 'https://example.com/', ACTIONS_ID_TOKEN_REQUEST_TOKEN: `${secret}\nx` },
  ],
])('wrong usage: %s', async (_, env) => {
  const failure: unknown = await tokensWith(env)().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'usage', exitCode: 2 });
  expect(String(failure)).not.toContain(secret);
});

test('wrong usage: POSTERN_KEY_ID that is no id of a key, and that is not shown', () => {
  const value = `app_svc_${keyId}`;
  const failure = (() => {
    try {
      return tokensWith({}, value);
    } catch (error) {
      return error;
    }
  })();
  expect(failure).toMatchObject({ code: 'usage', exitCode: 2 });
  expect(String(failure)).not.toContain(value);
});

test.each([
  ['another server', 'https://evil.example.com'],
  ['the server and another one', ['https://postern.example.com', 'https://evil.example.com']],
  ['nobody', null],
])('an ID token for %s is not sent, whatever POSTERN_URL says', async (_, aud) => {
  const idToken = jwt('of it', aud);
  const { env } = await runner({ body: { value: idToken } });
  for (const given of [{ POSTERN_ID_TOKEN: idToken }, env]) {
    const failure: unknown = await tokensWith(given)().catch((error: unknown) => error);
    expect(failure).toMatchObject({
      code: 'no_id_token',
      exitCode: 4,
      message: expect.stringContaining(`for another server than ${origin}`),
    });
    expect(JSON.stringify(failure)).not.toContain(idToken);
  }
  expect(forms).toEqual([]);
});

test('what is no ID token is neither sent nor shown', async () => {
  const failure: unknown = await tokensWith({ POSTERN_ID_TOKEN: secret })().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'no_id_token', exitCode: 4 });
  expect(String(failure)).not.toContain(secret);
  expect(forms).toEqual([]);
});
