import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../scripts/local-servers.ts';
import project from '../../package.json' with { type: 'json' };
import { readToolNames } from '../../src/features/agents/tool-names.ts';
import { zipOf } from '../archives/zip.ts';
import { Browser } from '../faults/browser.ts';
import { administrator, freePorts, type Program, startProgram } from '../faults/program.ts';
import { installPackages, run, runPackage } from './generators.ts';
import { type Exchange, type Recorder, startRecorder } from './recorder.ts';
import { transcriptPage } from './transcript.ts';

/** Agents on two independent implementations of the protocol, against a whole program: they register, are allowed, and work. */
const sdk = 'mcp==2.3.0';
const typescriptSdk = project.dependencies['@modelcontextprotocol/client'];
let folder: string;
let server: Program;
/** The address of the server, at which the recorder listens. */
let origin: string;
let recorder: Recorder;
let browser: Browser;
let siteId: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-agents-'));
  installPackages();
  await run('python3', ['-m', 'venv', 'venv'], folder);
  await run(python(), ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', sdk], folder);
  const port = await freePort();
  origin = `http://localhost:${port}`;
  server = await startProgram({
    dataDir: join(folder, 'data'),
    ports: await freePorts(),
    settings: { SERVICE_UI_URL: origin, OUTBOUND_ALLOW_PRIVATE: 'localhost,127.0.0.1,::1' },
  });
  recorder = await startRecorder(port, server.origin);
  browser = new Browser(origin);
  await browser.signIn(administrator.email, administrator.password);
  const { headers, data } = await browser.api('GET', '/config/mcp');
  const changed = {
    ...data.policy,
    enabled: true,
    clients: { ...data.policy.clients, registration: 'open' },
    callsPerMinute: 10_000,
  };
  const put = await browser.api('PUT', '/config/mcp', changed, { 'if-match': String(headers['etag']) });
  if (put.status !== 200) throw new Error(put.text);
  const page = zipOf([{ name: 'index.html', content: '<p>read</p>' }]);
  const site = await browser.upload('/sites?name=Handbook&visibility=private', 'application/zip', page);
  siteId = site.data.id;
});

afterAll(async () => {
  await recorder?.stop();
  await server?.end('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});

const python = () => join(folder, 'venv/bin/python');

test('the SDKs for TypeScript and for Python work at once, each with its own sign-in', async () => {
  recorder.holdUntil(2, '"get_context"');
  const [typescript, inPython] = await Promise.all([inTypescript(), runPython()]);
  const expected = {
    tools: readToolNames.toSorted(),
    person: expect.any(String) as string,
    site: 'Handbook',
    refusal: 'site_not_found',
  };
  expect([typescript, inPython]).toEqual([expected, expected]);
  const { data: sessions } = await browser.api('GET', '/me/agents/sessions');
  expect(sessions).toHaveLength(2);
  expect(sessions.map(({ calls }: { calls: number }) => calls)).toEqual([3, 3]);
  const page = transcriptOf(await recorder.exchanges());
  await expect(page).toMatchFileSnapshot('../../docs/reference/mcp-transcript.md');
});

test('several calls at once on an expired token are all answered, and the person stays signed in', async () => {
  const agent = await signedIn();
  await agent.client.connect(agent.transport);
  agent.spoilToken();
  const calls = Array.from({ length: 4 }, () => agent.client.callTool({ name: 'get_context' }));
  const answers = await Promise.all(calls);
  expect(answers.map(({ isError }) => isError ?? false)).toEqual([false, false, false, false]);
  agent.spoilToken();
  expect((await agent.client.callTool({ name: 'get_context' })).isError ?? false).toBe(false);
  await agent.client.close();
});

function transcriptOf(exchanges: readonly Exchange[]): string {
  const isTypescript = ({ headers }: Exchange) => headers['user-agent'] === 'node';
  const speakers = [
    { title: `TypeScript: \`@modelcontextprotocol/client\` ${typescriptSdk}`, isSender: isTypescript },
    {
      title: `Python: \`mcp\` ${sdk.split('==')[1]}`,
      isSender: (exchange: Exchange) => !isTypescript(exchange),
    },
  ];
  return transcriptPage(exchanges, speakers, [
    [origin, 'https://postern.example'],
    [siteId, '<site>'],
    [/http:\/\/p-[a-z0-9]+\.sites\.localhost:\d+/g, 'https://<label>.sites.example'],
    [/mcp_[A-Za-z0-9]{20}/g, '<client>'],
    [/usr_[A-Za-z0-9]{20}/g, '<person>'],
    [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>'],
  ]);
}

/**
 * The conformance suite of the protocol. It has no tokens, so a proxy adds one. Most of its scenarios need its own tools, resources and prompts; exactly these are in the list of expected failures. A scenario of the list that passes fails the test.
 */
test.each([
  ['2025-11-25', '@modelcontextprotocol/conformance', ['--suite', 'active']],
  ['2026-07-28', 'conformance-next', ['--requirements', '2026-07-28']],
])(
  'revision %s: the conformance suite fails in nothing but what is listed',
  async (revision, name, options) => {
    const proxy = await withToken((await signedIn()).accessToken);
    try {
      const list = join(import.meta.dirname, `conformance-${revision}.yaml`);
      const told = await runPackage(
        `${name}/dist/index.js`,
        ['server', '--url', proxy.url, '--expected-failures', list, ...options],
        folder,
      );
      expect(told).toContain('Baseline check passed');
    } finally {
      await proxy.stop();
    }
  },
);

/** Postern is the client here, at servers whose sign-in is as unusual as the standards allow. */
test('as a client of other servers, Postern passes the conformance suite except for the listed scenarios', async () => {
  const program = join(import.meta.dirname, 'programs/connect.ts');
  const list = join(import.meta.dirname, 'conformance-client.yaml');
  const told = await runPackage(
    'conformance-next/dist/index.js',
    [
      'client',
      '--command',
      `${process.execPath} ${program}`,
      '--suite',
      'auth',
      '--spec-version',
      '2026-07-28',
      '--expected-failures',
      list,
    ],
    folder,
    { POSTERN_URL: origin, POSTERN_SESSION: browser.session },
  );
  expect(told).toContain('Baseline check passed');
});

async function withToken(token: string) {
  const proxy = createServer((request, response) => {
    // As Postern sees them without the proxy; another host or origin stays as it is.
    const { host = '', origin: sender = '', ...others } = request.headers;
    const names = host === ownHost() ? new URL(origin).host : host;
    const from = sender === `http://${ownHost()}` ? origin : sender;
    const headers = {
      ...others,
      host: names,
      ...(sender === '' ? {} : { origin: from }),
      authorization: `Bearer ${token}`,
    };
    const onward = send(`${origin}/mcp`, { method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  }).listen(0, '127.0.0.1');
  const ownHost = () => `localhost:${(proxy.address() as AddressInfo).port}`;
  await once(proxy, 'listening');
  return {
    url: `http://${ownHost()}/mcp`,
    async stop() {
      proxy.closeAllConnections();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}

async function runPython(): Promise<unknown> {
  const child = spawn(python(), [join(import.meta.dirname, 'programs/agent.py')], {
    env: { ...process.env, POSTERN_URL: origin, POSTERN_SITE: siteId },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === 1) child.stdin.end(`${(await allowed(new URL(line))).toString()}\n`);
  }
  if (child.exitCode === null) await once(child, 'exit');
  if (lines.length !== 2) throw new Error(`The agent ended with ${child.exitCode}:\n${errors.slice(-4_000)}`);
  return JSON.parse(lines[1] ?? '');
}

/** Lets an agent on the SDK for TypeScript in; what it got, for its next requests. */
async function signedIn() {
  const redirectUrl = 'http://127.0.0.1:45125/callback';
  let page: URL | undefined;
  let [known, tokens, verifier, discovered]: [unknown, unknown, string, unknown] = [
    undefined,
    undefined,
    '',
    undefined,
  ];
  const transportOf = () =>
    new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), {
      authProvider: {
        redirectUrl,
        clientMetadata: { redirect_uris: [redirectUrl], client_name: 'Agent in TypeScript' },
        clientInformation: () => known as never,
        saveClientInformation: (saved) => void (known = saved),
        tokens: () => tokens as never,
        saveTokens: (saved) => void (tokens = saved),
        redirectToAuthorization: (url) => void (page = url),
        saveCodeVerifier: (saved) => void (verifier = saved),
        codeVerifier: () => verifier,
        saveDiscoveryState: (saved) => void (discovered = saved),
        discoveryState: () => discovered as never,
      },
    });
  const newClient = () => new Client({ name: 'agent', version: '1.0.0' });
  const first = transportOf();
  await newClient()
    .connect(first)
    .catch((error: unknown) => {
      if (page === undefined) throw error;
    });
  if (page === undefined) throw new Error('The client did not ask for a sign-in.');
  await first.finishAuth(await allowed(page));
  return {
    accessToken: (tokens as { access_token: string }).access_token,
    client: newClient(),
    transport: transportOf(),
    /** Replaces the access token with one that the server refuses. */
    spoilToken: () => void (tokens = { ...(tokens as object), access_token: 'x'.repeat(43) }),
  };
}

async function inTypescript(): Promise<unknown> {
  const { client, transport } = await signedIn();
  await client.connect(transport);
  const { tools } = await client.listTools();
  const use = async (name: string, input = {}) => await client.callTool({ name, arguments: input });
  const [context, site, missing] = [
    await use('get_context'),
    await use('get_site', { siteId }),
    await use('get_site', { siteId: 'site_missing' }),
  ];
  await client.close();
  const [part] = missing.content as { text: string }[];
  return {
    tools: tools.map(({ name }) => name).toSorted(),
    person: (context.structuredContent as { person: { name: string } }).person.name,
    site: (site.structuredContent as { name: string }).name,
    refusal: JSON.parse(part?.text ?? '{}').error.code,
  };
}

/** The person, who is signed in, allows the client; what its redirect brings. */
async function allowed(start: URL): Promise<URLSearchParams> {
  let reply = await browser.navigate(start.href);
  for (let hop = 0; hop < 10; hop += 1) {
    const { location } = reply.headers;
    const to = typeof location === 'string' ? new URL(location, origin) : undefined;
    if (to !== undefined && to.origin !== origin) return to.searchParams;
    const [, action = ''] = /<form method="post" action="([^"]+)"/.exec(reply.text) ?? [];
    reply =
      to === undefined
        ? await browser.submit(action, { decision: 'allow' })
        : await browser.navigate(to.href);
  }
  throw new Error(`The client was not allowed: ${reply.status} ${reply.text.slice(0, 500)}`);
}
