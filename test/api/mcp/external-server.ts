import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { createGuardedFetch } from '../../../src/platform/guarded-fetch.ts';
import { createOutbound } from '../../../src/platform/outbound.ts';
import type { Harness, Person } from '../../harness.ts';

/** A real external MCP server, written with the SDK, on a separate port. */
export type ExternalServer = {
  readonly url: string;
  /** What it lists; a test changes it. */
  tools: ExternalTool[];
  /** Authorization headers of the requests, in their order; null: none was sent. */
  readonly authorizations: (string | null)[];
  /** How often its tools were listed. */
  listings: number;
  /** Called tools with their arguments. */
  readonly calls: { readonly name: string; readonly input: Record<string, unknown> }[];
  /** Answers in place of the server while it is set. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** The result of every call, as no honest library would write it. */
  rawResult: Record<string, unknown> | undefined;
  /** The JSON-RPC error that refuses the next call. */
  nextError: { readonly code: number; readonly message: string } | undefined;
  /** Whether a request with this header is accepted; at first every request is. */
  accepts: (authorization: string | null) => boolean;
  /** The same, when the answer takes a while. */
  acceptsLater: ((authorization: string | null) => Promise<boolean>) | undefined;
  /** Handles a request that reached another listener. */
  emit(request: IncomingMessage, response: ServerResponse): void;
  close(): Promise<void>;
};

export type ExternalTool = {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: Record<string, unknown>;
  readonly outputSchema?: Record<string, unknown>;
  readonly annotations?: Record<string, unknown>;
  /** What it answers. */
  readonly content?: Record<string, unknown>[];
};

export async function openExternalServer(): Promise<ExternalServer> {
  const server = createServer((request, response) => void answer(request, response));
  const external: Omit<ExternalServer, 'url' | 'close'> = {
    tools: [
      { name: 'search_issues', title: 'Search issues', description: 'Finds issues by words.' },
      { name: 'close_issue', description: 'Closes an issue.' },
    ],
    authorizations: [],
    listings: 0,
    calls: [],
    instead: undefined,
    rawResult: undefined,
    nextError: undefined,
    accepts: () => true,
    acceptsLater: undefined,
    emit: (request, response) => void answer(request, response),
  };
  const handler = createMcpHandler(() => serverOf(external), { legacy: 'stateless' });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const authorization = request.headers.authorization ?? null;
    external.authorizations.push(authorization);
    if (external.instead !== undefined) return external.instead(request, response);
    const isAccepted =
      external.accepts(authorization) && (await external.acceptsLater?.(authorization)) !== false;
    if (!isAccepted) return void response.writeHead(401).end();
    const body = Buffer.concat(await request.toArray());
    const message = body.length === 0 ? {} : JSON.parse(body.toString());
    const { nextError: error, rawResult: result } = external;
    if ((error ?? result) !== undefined && message.method === 'tools/call') {
      external.nextError = undefined;
      const raw = { jsonrpc: '2.0', id: message.id, ...(error ? { error } : { result }) };
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(raw));
    }
    const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
      typeof value === 'string' ? [[name, value]] : [],
    );
    const answered = await handler.fetch(
      new Request(`http://127.0.0.1${request.url ?? ''}`, {
        method: request.method ?? 'GET',
        headers,
        ...(body.length === 0 ? {} : { body }),
      }),
    );
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    response.end(Buffer.from(await answered.arrayBuffer()));
  }

  const address = await listen(server);
  return Object.assign(external, {
    url: `${address}/mcp`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

export async function listen(server: Server, port = 0): Promise<string> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The tools are served as they are written, so that a test can list what no honest library would. */
function serverOf(external: Pick<ExternalServer, 'tools' | 'calls' | 'listings'>): McpServer {
  const product = new McpServer({ name: 'tracker', version: '1.0.0' }, { capabilities: { tools: {} } });
  const { server } = product;
  server.setRequestHandler('tools/list', () => {
    external.listings += 1;
    return {
      tools: external.tools.map(({ name, title, description, annotations, inputSchema, outputSchema }) => ({
        name,
        ...(title === undefined ? {} : { title }),
        ...(description === undefined ? {} : { description }),
        ...(annotations === undefined ? {} : { annotations }),
        inputSchema: { type: 'object' as const, ...inputSchema },
        ...(outputSchema === undefined ? {} : { outputSchema: { type: 'object' as const, ...outputSchema } }),
      })),
    };
  });
  server.setRequestHandler('tools/call', ({ params }) => {
    const input = params.arguments ?? {};
    external.calls.push({ name: params.name, input });
    const content = external.tools.find(({ name }) => name === params.name)?.content;
    return { content: (content ?? [{ type: 'text', text: `did ${JSON.stringify(input)}` }]) as never };
  });
  return product;
}

/** Reaches servers of tests, which are in a private network. */
export const loopbackFetch = createGuardedFetch({
  outbound: createOutbound({ allowsPrivate: ['127.0.0.1', 'localhost'] }),
  maxBytes: 300_000,
});

/** Registers the server as an administrator does. */
export async function addServer(
  h: Harness,
  root: Person,
  { url }: Pick<ExternalServer, 'url'>,
  more: Record<string, unknown> = {},
) {
  const body = { slug: 'tracker', name: 'Tracker', url, auth: 'none', ...more };
  return await h.call('POST', '/config/mcp/servers', { as: root, body });
}

/** Accepts every tool that the server lists now, as far as possible. */
export async function acceptAll(h: Harness, root: Person, slug = 'tracker') {
  const { data } = await h.call('GET', `/config/mcp/servers/${slug}/tools`, { as: root });
  for (const { name, digest } of data.tools as { name: string; digest: string }[])
    await h.call('POST', `/config/mcp/servers/${slug}/tools/${encodeURIComponent(name)}/accept`, {
      as: root,
      body: { digest },
    });
}
