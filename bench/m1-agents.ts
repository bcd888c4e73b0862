import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { zipOf } from '../test/archives/zip.ts';
import { Browser } from '../test/faults/browser.ts';
import { administrator, freePorts, startProgram } from '../test/faults/program.ts';
import { openExternalServer } from '../test/api/mcp/external-server.ts';
import { type BenchOptions, type Figure, median, sideBySide } from './figures.ts';
import { processorSeconds } from './load.ts';
import { call } from './shop.ts';

const maxRatio = 1.3;
const maxListMs = 50;
const serversCount = 20;
const sitesCount = 20;
const atOnce = 8;

/**
 * M1: what a call of the tool `list_sites` costs against the route `GET /sites`, which answers the same. Both for the same
 * person, with an access token, by processor time of the server. M2: how long `tools/list` takes for a person with accounts at
 * 20 external servers, which Postern asks for changes in the background, every two seconds.
 */
export async function agents({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-agents-'));
  const external = await openExternalServer();
  const settings = { OUTBOUND_ALLOW_PRIVATE: '127.0.0.1' };
  const program = await startProgram({ dataDir: folder, ports: await freePorts(), settings });
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  try {
    const ada = new Browser(program.origin);
    await prepare(ada);
    const tool = await accessToken(ada, {
      client: 'postern-mcp',
      scope: 'mcp',
      resource: `${program.origin}/mcp`,
    });
    const route = await accessToken(ada, { client: 'postern-cli', scope: 'sites:read' });
    const calls = quick ? 50 : 150;
    const cost = (make: () => Promise<void>) => async () => {
      const before = processorSeconds(program.pid);
      const one = async () => {
        for (let count = 0; count < calls / atOnce; count += 1) await make();
      };
      await Promise.all(Array.from({ length: atOnce }, one));
      return (processorSeconds(program.pid) - before) / (Math.ceil(calls / atOnce) * atOnce);
    };
    const { ours, reference, ratio } = await sideBySide(
      quick ? 1 : 15,
      cost(async () => {
        const params = { name: 'list_sites', arguments: {} };
        const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
        const { result } = await send(agent, tool, `${program.origin}/mcp`, body);
        if (result?.structuredContent?.sites?.length !== sitesCount) throw new Error(JSON.stringify(result));
      }),
      cost(async () => {
        const { data } = await send(agent, route, `${program.origin}/api/v2/sites?limit=${sitesCount}`);
        if (data?.length !== sitesCount) throw new Error(JSON.stringify(data));
      }),
    );
    return [
      {
        id: 'M1',
        what: `tools/call of list_sites with ${sitesCount} sites against GET /sites, processor time`,
        ours: `${(ours * 1_000).toFixed(2)} ms`,
        reference: `${(reference * 1_000).toFixed(2)} ms`,
        ratio,
        floor: `≤ ${maxRatio}`,
        goal: `≤ ${maxRatio}`,
        passes: ratio <= maxRatio,
      },
      await listing(async () => await listTools(agent, tool, ada, external.url), quick),
    ];
  } finally {
    agent.destroy();
    await program.end('SIGTERM');
    await external.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Connects the servers, and resolves with a function that lists the tools once, in ms. */
async function listTools(
  agent: Agent,
  token: string,
  ada: Browser,
  url: string,
): Promise<() => Promise<number>> {
  for (let count = 1; count <= serversCount; count += 1) {
    const slug = `server-${count}`;
    const server = { slug, name: slug, url, auth: 'none', readOnlyTools: ['search_issues'] };
    await call(ada, 'POST', '/config/mcp/servers', server);
    await call(ada, 'POST', `/me/connections/${slug}/start`, {});
    const at = `/config/mcp/servers/${slug}/tools`;
    const { tools } = await call(ada, 'GET', at);
    for (const { name, digest } of tools) await call(ada, 'POST', `${at}/${name}/accept`, { digest });
  }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  return async () => {
    const startedAt = performance.now();
    const { result } = await send(agent, token, `${ada.origin}/mcp`, body);
    const ms = performance.now() - startedAt;
    const names: string[] = result.tools.map(({ name }: { name: string }) => name);
    if (names.filter((name) => name.startsWith('server-')).length !== serversCount)
      throw new Error(names.join(' '));
    return ms;
  };
}

async function listing(ready: () => Promise<() => Promise<number>>, quick: boolean): Promise<Figure> {
  const list = await ready();
  for (let count = 0; count < 5; count += 1) await list();
  const took: number[] = [];
  for (let count = 0; count < (quick ? 3 : 60); count += 1) took.push(await list());
  const ms = median(took);
  return {
    id: 'M2',
    what: `tools/list for a person with accounts at ${serversCount} external servers (slowest ${Math.max(...took).toFixed(0)} ms)`,
    ours: `${ms.toFixed(0)} ms`,
    reference: `${maxListMs} ms`,
    ratio: ms / maxListMs,
    floor: `≤ ${maxListMs} ms`,
    goal: `≤ ${maxListMs} ms`,
    passes: ms <= maxListMs,
  };
}

async function prepare(ada: Browser): Promise<void> {
  await ada.signIn(administrator.email, administrator.password);
  const { policy } = await call(ada, 'GET', '/config/mcp');
  const changed = { ...policy, enabled: true, callsPerMinute: 10_000 };
  await call(ada, 'PUT', '/config/mcp', changed, { 'if-match': '*' });
  const page = zipOf([{ name: 'index.html', content: '<p>bench</p>' }]);
  for (let count = 1; count <= sitesCount; count += 1) {
    const { status, text: why } = await ada.upload(`/sites?name=site-${count}`, 'application/zip', page);
    if (status !== 201) throw new Error(why);
  }
}

type Asked = { readonly client: string; readonly scope: string; readonly resource?: string };

/** Authorization code with PKCE; the person, who is signed in, allows the client. */
async function accessToken(ada: Browser, { client, scope, resource }: Asked): Promise<string> {
  const verifier = randomBytes(32).toString('base64url');
  const redirectUri = 'http://127.0.0.1:45125/callback';
  const target = resource === undefined ? {} : { resource };
  const query = new URLSearchParams({
    client_id: client,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: `openid offline_access ${scope}`,
    prompt: 'consent',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...target,
  });
  let reply = await ada.navigate(`${ada.origin}/identity/auth?${query.toString()}`);
  for (;;) {
    const { location } = reply.headers;
    const to = typeof location === 'string' ? new URL(location, ada.origin) : undefined;
    if (to !== undefined && to.origin !== ada.origin) {
      const form = new URLSearchParams({
        client_id: client,
        grant_type: 'authorization_code',
        code: to.searchParams.get('code') ?? '',
        redirect_uri: redirectUri,
        code_verifier: verifier,
        ...target,
      });
      const answer = await fetch(`${ada.origin}/identity/token`, { method: 'POST', body: form });
      const { access_token: token } = (await answer.json()) as { access_token?: string };
      if (token === undefined) throw new Error(`There is no token for ${client}: ${answer.status}`);
      return token;
    }
    const [, action] = /<form method="post" action="([^"]+)"/.exec(reply.text) ?? [];
    if (to === undefined && action === undefined) throw new Error(reply.text.slice(0, 500));
    reply =
      to === undefined ? await ada.submit(action ?? '', { decision: 'allow' }) : await ada.navigate(to.href);
  }
}

// Parsed JSON; a wrong field ends the bench.
// oxlint-disable-next-line typescript/no-explicit-any
async function send(agent: Agent, token: string, url: string, body?: object): Promise<any> {
  const { port, pathname, search, host } = new URL(url);
  const asked = request({
    agent,
    host: '127.0.0.1',
    port,
    path: pathname + search,
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      host,
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
  }).end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const found = await text(response);
  if (response.statusCode !== 200) throw new Error(`${pathname} answered ${response.statusCode}: ${found}`);
  // An event stream of one event (HTML, section 9.2.6), or JSON.
  return JSON.parse(found.startsWith('{') ? found : (/^data: (.*)$/m.exec(found)?.[1] ?? ''));
}
