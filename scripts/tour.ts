import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './local-servers.ts';
import { tourOfSites } from './tour-sites.ts';
import { type Answer, expect, masked, show, steps, title, toAnswer, Visitor } from './tour-visitor.ts';

/**
 * `npm run tour`: exercises a server as the author of a script would, and prints each request and response with
 * credential values masked. With TOUR_EMAIL and TOUR_PASSWORD it uses the server at SERVICE_UI_URL as that administrator;
 * otherwise it starts a server in a temporary folder. Any unexpected response ends it with exit code 1, so it is an
 * end-to-end test too.
 */
async function tour(base: string, email: string, password: string): Promise<void> {
  const person = new Visitor(base);
  const script = async (path: string, token: string) =>
    await toAnswer(await fetch(new URL(path, base), { headers: { authorization: `Bearer ${token}` } }));

  title('A person signs in');
  await person.signIn(email, password);
  const me = await person.ask('GET', '/api/v2/auth/context');
  expect(me, 200);
  show('GET /api/v2/auth/context   (session cookie)', me);

  title('What may I create?');
  const policy = await person.ask('GET', '/api/v2/me/tokens/policy');
  expect(policy, 200);
  show('GET /api/v2/me/tokens/policy', policy);

  title('A mistyped field is refused instead of making an eternal key');
  const request = { name: 'tour', scopes: ['repos:read'], repositoryAccess: { mode: 'all' }, ttlHours: 1 };
  const typo = await person.ask('POST', '/api/v2/me/tokens', { ...request, ttlhours: 1 });
  expect(typo, 400, 'invalid_body');
  show('POST /api/v2/me/tokens {… "ttlhours": 1}', typo);

  title('Create a key: one hour, read repositories');
  const created = await person.ask('POST', '/api/v2/me/tokens', request);
  expect(created, 201);
  show(
    `POST /api/v2/me/tokens ${JSON.stringify(request)}`,
    created,
    'The value is in this answer and in no other.',
  );
  const { id, token } = created.json.data as { id: string; token: string };

  title('A script asks what its key is');
  const context = await script('/api/v2/auth/context?can=repos:write', token);
  expect(context, 200);
  show('GET /api/v2/auth/context?can=repos:write   (Authorization: Bearer app_pat_••••••••)', context);

  title('A script uses it');
  const repositories = await script('/api/v2/repositories', token);
  expect(repositories, 200);
  show('GET /api/v2/repositories', repositories);

  title('A key cannot manage keys');
  const refused = await script('/api/v2/me/tokens', token);
  expect(refused, 403, 'interactive_auth_required');
  show('GET /api/v2/me/tokens', refused);

  title('A key in a URL is refused and counts as exposed');
  const leaked = await toAnswer(await fetch(new URL(`/api/v2/repositories?token=${token}`, base)));
  expect(leaked, 400, 'credential_in_url');
  show(`GET /api/v2/repositories?token=${token}`, leaked);

  title('Exceed the rate limit');
  const limited = await exceed(() => script('/api/v2/auth/context', token));
  expect(limited.answer, 429, 'rate_limited');
  show(
    `GET /api/v2/auth/context × ${limited.asked}`,
    limited.answer,
    'Refused requests spend nothing; waiting that long is enough.',
  );

  title('Revoke it; the next request is refused');
  const revoked = await person.ask('DELETE', `/api/v2/me/tokens/${id}`);
  expect(revoked, 200);
  show(`DELETE /api/v2/me/tokens/${id}`, revoked);
  const dead = await script('/api/v2/auth/context', token);
  expect(dead, 401, 'invalid_credential');
  show('GET /api/v2/auth/context', dead);

  title('Read the story of the key');
  const timeline = await person.ask('GET', `/api/v2/me/tokens/${id}/timeline?limit=2`);
  expect(timeline, 200);
  show(`GET /api/v2/me/tokens/${id}/timeline?limit=2`, timeline);

  title('An administrator reads the audit trail');
  const auditLog = await person.ask('GET', `/api/v2/audit/events?target=${id}&event=api_key.revoked`);
  expect(auditLog, 200);
  if (!Array.isArray(auditLog.json.data) || auditLog.json.data.length !== 1)
    throw new Error('The revocation is not in the trail once.');
  show(`GET /api/v2/audit/events?target=${id}&event=api_key.revoked`, auditLog);

  await tourOfSites(person, base);

  title('Sign out');
  const out = await person.ask('POST', '/auth/logout');
  if (out.status !== 204) throw new Error(`Signing out answered ${out.status}.`);
  const after = await person.ask('GET', '/api/v2/me/tokens');
  expect(after, 401, 'authentication_required');
  show('GET /api/v2/me/tokens', after);
  console.log(`\nThe tour is over: ${steps} steps, every answer as expected.`);
}

/** Sends requests until one is refused, a few at a time; an owner's limit is 600 a minute unless the policy says otherwise. */
async function exceed(ask: () => Promise<Answer>): Promise<{ asked: number; answer: Answer }> {
  for (let asked = 0; asked < 20_000; asked += 20) {
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    const answer = answers.find(({ status }) => status === 429);
    if (answer !== undefined) return { asked: asked + 20, answer };
  }
  throw new Error('20,000 requests were not limited.');
}

async function withOwnServer(
  walk: (base: string, email: string, password: string) => Promise<void>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-tour-'));
  const [port, gatewayPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
  const base = `http://localhost:${port}`;
  const email = 'tour@example.com';
  const password = `tour-${Math.random().toString(36).slice(2)}-password`;
  const server = spawn(process.execPath, [join(import.meta.dirname, '../src/main.ts')], {
    env: {
      ...process.env,
      DATA_DIR: folder,
      SERVICE_UI_URL: base,
      PORT: String(port),
      GATEWAY_PORT: String(gatewayPort),
      SITES_CONTENT_URL: `http://sites.localhost:${gatewayPort}`,
      METRICS_PORT: String(metricsPort),
      BOOTSTRAP_ADMIN_EMAIL: email,
      BOOTSTRAP_ADMIN_PASSWORD: password,
      LOG_LEVEL: 'error',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await readyOf(server);
    console.log(`Walking a server of its own at ${base}, on data in a temporary folder.`);
    await walk(base, email, password);
  } finally {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGTERM');
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
}

function readyOf(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    server.stdout?.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('is ready')) resolve();
    });
    server.once('exit', (code) =>
      reject(new Error(`The server ended with code ${code} before it was ready.`)),
    );
  });
}

const {
  TOUR_EMAIL: email,
  TOUR_PASSWORD: password,
  SERVICE_UI_URL: base = 'http://localhost:3000',
} = process.env;
try {
  if (email !== undefined && password !== undefined) await tour(base, email, password);
  else await withOwnServer(tour);
} catch (error) {
  console.error(
    `\nThe tour stopped at step ${steps}: ${masked(error instanceof Error ? error.message : String(error))}`,
  );
  process.exitCode = 1;
}
