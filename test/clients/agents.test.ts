import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readToolNames } from '../../src/features/agents/tool-names.ts';
import { zipOf } from '../archives/zip.ts';
import { Browser } from '../faults/browser.ts';
import { administrator, freePorts, type Program, startProgram } from '../faults/program.ts';
import { run } from './generators.ts';

/** Agents on two independent implementations of the protocol, against a whole program: they register, are allowed, and work. */
const sdk = 'mcp==2.3.0';
let folder: string;
let server: Program;
let browser: Browser;
let siteId: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-agents-'));
  await run('python3', ['-m', 'venv', 'venv'], folder);
  await run(python(), ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', sdk], folder);
  server = await startProgram({ dataDir: join(folder, 'data'), ports: await freePorts() });
  browser = new Browser(server.origin);
  await browser.signIn(administrator.email, administrator.password);
  const { headers, data } = await browser.api('GET', '/config/mcp');
  const changed = {
    ...data.policy,
    enabled: true,
    clients: { ...data.policy.clients, registration: 'open' },
  };
  const put = await browser.api('PUT', '/config/mcp', changed, { 'if-match': String(headers['etag']) });
  if (put.status !== 200) throw new Error(put.text);
  const page = zipOf([{ name: 'index.html', content: '<p>read</p>' }]);
  const site = await browser.upload('/sites?name=Handbook&visibility=private', 'application/zip', page);
  siteId = site.data.id;
});

afterAll(async () => {
  await server?.end('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});

const python = () => join(folder, 'venv/bin/python');

test('the SDKs for TypeScript and for Python work at once, each with a sign-in of its own', async () => {
  const [typescript, inPython] = await Promise.all([inTypescript(), runPython()]);
  const told = {
    tools: readToolNames.toSorted(),
    person: expect.any(String) as string,
    site: 'Handbook',
    refusal: 'site_not_found',
  };
  expect([typescript, inPython]).toEqual([told, told]);
  const { data: sessions } = await browser.api('GET', '/me/agents/sessions');
  expect(sessions).toHaveLength(2);
  expect(sessions.map(({ calls }: { calls: number }) => calls)).toEqual([3, 3]);
});

async function runPython(): Promise<unknown> {
  const child = spawn(python(), [join(import.meta.dirname, 'programs/agent.py')], {
    env: { ...process.env, POSTERN_URL: server.origin, POSTERN_SITE: siteId },
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

async function inTypescript(): Promise<unknown> {
  const redirectUrl = 'http://127.0.0.1:45125/callback';
  let page: URL | undefined;
  let [known, tokens, verifier, discovered]: [unknown, unknown, string, unknown] = [
    undefined,
    undefined,
    '',
    undefined,
  ];
  const transportOf = () =>
    new StreamableHTTPClientTransport(new URL(`${server.origin}/mcp`), {
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
  const client = newClient();
  await client.connect(transportOf());
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
    const to = typeof location === 'string' ? new URL(location, server.origin) : undefined;
    if (to !== undefined && to.origin !== server.origin) return to.searchParams;
    const [, action = ''] = /<form method="post" action="([^"]+)"/.exec(reply.text) ?? [];
    reply =
      to === undefined
        ? await browser.submit(action, { decision: 'allow' })
        : await browser.navigate(to.href);
  }
  throw new Error(`The client was not allowed: ${reply.status} ${reply.text.slice(0, 500)}`);
}
