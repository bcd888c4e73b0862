import {
  Client,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { inject } from 'light-my-request';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { wholeWorkspace } from '../../../src/features/agents/definitions.ts';
import { defaultMcpPolicy, forEachTool, type McpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { toolNames } from '../../../src/features/agents/tool-names.ts';
import { type Harness, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';

/** The official client of the protocol, connected by a person as people do: discovery, sign-in, consent. */
export type Agent = {
  readonly client: Client;
  readonly clientId: string;
  /** The page on which the person allowed it. */
  readonly consent: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  /** What a tool answers; rejects when it refuses. */
  use(name: string, input?: Record<string, unknown>): Promise<unknown>;
  /** The error that a tool answers; rejects when it does not refuse. */
  refusal(
    name: string,
    input?: Record<string, unknown>,
  ): Promise<{ code: string; message: string; hint: string; details?: Record<string, unknown> }>;
};

type Revision = 'legacy' | { pin: string };

const redirectUrl = 'http://127.0.0.1:45123/callback';

export async function connectAgent(
  h: Harness,
  name: string,
  {
    mode = { pin: '2026-07-28' },
    client: knownClient = 'postern-mcp',
    registersAs,
    opensPage,
    answers,
    definition = '',
    scope,
  }: {
    mode?: Revision;
    client?: string;
    /** It registers itself under this name. */
    registersAs?: string;
    /** It can open pages for the person: what it does with one, and whether the person agrees to open it. */
    opensPage?: (url: string) => Promise<'accept' | 'decline'>;
    /** It can show the person a question: what the person answers. */
    answers?: (question: string) => { action: 'accept' | 'decline'; content?: Record<string, boolean> };
    /** The id of the definition that the person chooses. */
    definition?: string;
    /** What it asks for, as its version of the protocol does; null: it names no scope. */
    scope?: string | null;
  } = {},
): Promise<Agent> {
  const fetch = fetchOf(h);
  let page: URL | undefined;
  let verifier = '';
  const issuer = `${uiOrigin}/identity`;
  let known: StoredOAuthClientInformation | undefined =
    registersAs === undefined ? { client_id: knownClient, issuer } : undefined;
  let discovered: OAuthDiscoveryState | undefined;
  let tokens: { access_token: string; refresh_token?: string | undefined; token_type: string } | undefined;
  const connect = () => {
    const transport = new StreamableHTTPClientTransport(new URL(`${uiOrigin}/mcp`), {
      fetch,
      authProvider: {
        redirectUrl,
        clientMetadata: { redirect_uris: [redirectUrl], client_name: registersAs ?? 'Test agent' },
        clientInformation: () => known,
        saveClientInformation: (saved) => void (known = saved),
        tokens: () => tokens,
        saveTokens: (saved) => void (tokens = saved),
        redirectToAuthorization: (url) => void (page = url),
        saveCodeVerifier: (saved) => void (verifier = saved),
        codeVerifier: () => verifier,
        saveDiscoveryState: (state) => void (discovered = state),
        discoveryState: () => discovered,
      },
    });
    const elicitation = {
      ...(opensPage === undefined ? {} : { url: {} }),
      ...(answers === undefined ? {} : { form: {} }),
    };
    const capabilities = Object.keys(elicitation).length === 0 ? {} : { elicitation };
    const client = new Client(
      { name: 'test-agent', version: '1.0.0' },
      { versionNegotiation: { mode }, capabilities },
    );
    if (Object.keys(elicitation).length > 0)
      client.setRequestHandler('elicitation/create', async ({ params }) => {
        if ('url' in params) return { action: (await opensPage?.(params.url)) ?? 'decline' };
        return answers?.(params.message) ?? { action: 'decline' };
      });
    return { transport, client };
  };
  const first = connect();
  await first.client.connect(first.transport).catch((error: unknown) => {
    if (page === undefined) throw error;
  });
  if (page === undefined) throw new Error('The client did not ask for a sign-in.');
  if (scope === null) page.searchParams.delete('scope');
  else if (scope !== undefined) page.searchParams.set('scope', scope);
  const { callback, consent } = await allow(new Browser(h.app.web), page, name, definition);
  await first.transport.finishAuth(callback.searchParams);
  const { transport, client } = connect();
  await client.connect(transport);
  const call = async (tool: string, input: Record<string, unknown> = {}) =>
    await client.callTool({ name: tool, arguments: input });
  return {
    client,
    clientId: known?.client_id ?? '',
    consent,
    accessToken: tokens?.access_token ?? '',
    refreshToken: tokens?.refresh_token ?? '',
    async use(tool, input) {
      const { isError, content, structuredContent } = await call(tool, input);
      if (isError === true) throw new Error(JSON.stringify(content));
      return structuredContent;
    },
    async refusal(tool, input) {
      const { isError, content } = await call(tool, input);
      const [part] = content as { text: string }[];
      if (isError !== true) throw new Error(`The tool answered ${part?.text}`);
      return JSON.parse(part?.text ?? '{}').error;
    },
  };
}

/** Signs in and allows the client, on the pages that it opened. */
async function allow(browser: Browser, start: URL, name: string, definition: string) {
  const actionOf = (text: string) => /<form method="post" action="([^"]+)"/.exec(text)?.[1] ?? '';
  let page = await browser.follow(await browser.get(start.pathname + start.search));
  if (page.text.includes('type="password"')) {
    const form = {
      email: `${name.toLowerCase()}@example.com`,
      password: 'correct horse battery',
      decision: 'sign-in',
    };
    page = await browser.follow(await browser.post(actionOf(page.text), form));
  }
  const consent = page.text;
  page = await browser.follow(await browser.post(actionOf(page.text), { decision: 'allow', definition }));
  if (page.location === undefined) throw new Error(`No redirect: ${page.status} ${page.text}`);
  return { callback: new URL(page.location), consent };
}

/** Reaches the web server without a network. */
export function fetchOf(h: Harness) {
  return async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const { pathname, search, host } = new URL(request.url);
    const body = Buffer.from(await request.arrayBuffer());
    const answer = await inject((raw, response) => void h.app.web.server.emit('request', raw, response), {
      method: request.method as 'GET',
      url: pathname + search,
      headers: { ...Object.fromEntries(request.headers), host },
      ...(body.length === 0 ? {} : { payload: body }),
    });
    const headers = Object.entries(answer.headers).map(([key, value]): [string, string] => [
      key,
      String(value),
    ]);
    const isEmpty = answer.statusCode === 204 || answer.statusCode === 304;
    return new Response(isEmpty ? null : answer.rawPayload, { status: answer.statusCode, headers });
  };
}

/** Writes a policy through the service, as an administrator would. One that allows changes gives `postern-mcp` every tool. */
export async function setMcpPolicy(h: Harness, change: Partial<McpPolicy> = {}): Promise<void> {
  if (change.allowChanges === true) await giveEveryTool(h, 'postern-mcp');
  const next = { ...defaultMcpPolicy, enabled: true, ...change };
  await h.app.services.mcpPolicy.put(systemAuditContext, '*', next);
}

async function giveEveryTool(h: Harness, clientId: string): Promise<void> {
  const { agentDefinitions } = h.app.services;
  const known = await agentDefinitions.list();
  if (known.some(({ clients }) => clients.includes(clientId))) return;
  const texts = { name: `Everything for ${clientId}`, purpose: 'For tests', instructions: '' };
  const tools = forEachTool(toolNames, () => 'allow' as const);
  const definition = {
    ...texts,
    tools,
    model: null,
    workspace: wholeWorkspace,
    isOffered: false,
    clients: [clientId],
  };
  await agentDefinitions.add(systemAuditContext, definition);
}
