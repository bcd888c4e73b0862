import type { Fetch } from '../../src/platform/fetch.ts';

/**
 * Every external MCP server and its authorization server, whatever the URL: a fuzzer reaches nothing outside of its process.
 * It has one tool, lets everyone sign in, and refuses every code.
 */
export const externalServer: Fetch = async (url, { method, body }) => {
  const { origin, pathname } = new URL(url);
  const metadata: Readonly<Record<string, unknown>> = {
    '/.well-known/oauth-protected-resource': { resource: origin, authorization_servers: [origin] },
    '/.well-known/oauth-authorization-server': {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
    },
  };
  if (method === 'GET')
    return pathname in metadata ? Response.json(metadata[pathname]) : new Response(null, { status: 404 });
  if (pathname === '/token') return Response.json({ error: 'invalid_grant' }, { status: 400 });
  const message = JSON.parse(typeof body === 'string' ? body : '{}');
  if (pathname === '/register') return Response.json({ ...message, client_id: 'fuzzed' }, { status: 201 });
  const result = results[String(message.method)];
  if (result !== undefined) return Response.json({ jsonrpc: '2.0', id: message.id, result });
  return new Response(null, { status: message.id === undefined ? 202 : 404 });
};

const results: Readonly<Record<string, unknown>> = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'all', version: '1' },
  },
  // As the example of the route that accepts it, so that its digest fits.
  'tools/list': {
    tools: [
      {
        name: 'search_issues',
        title: 'Search issues',
        description: 'Finds issues by words and labels.',
        inputSchema: { type: 'object' },
      },
    ],
  },
};
