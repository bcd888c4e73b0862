/**
 * A client for the conformance suite, which names its server in the last argument: an administrator of Postern registers
 * the server, accepts its sign-in, and connects an account there.
 */
const url = process.argv.at(-1) ?? '';
const origin = process.env['POSTERN_URL'] ?? '';
const headers = {
  origin,
  cookie: `__Host-postern_session=${process.env['POSTERN_SESSION']}`,
  'content-type': 'application/json',
};
/** What a scenario gives its client, such as an id at the authorization server. */
const given = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as {
  client_id?: string;
  client_secret?: string;
};
const slug = `suite-${new URL(url).port}`;
const path = `/config/mcp/servers/${slug}`;

const client =
  given.client_id === undefined
    ? {}
    : { client: { clientId: given.client_id, clientSecret: given.client_secret } };
await api('POST', '/config/mcp/servers', { slug, name: 'Suite', url, auth: 'oauth', ...client });
try {
  const page = await fetch(await addressOfSignIn(), { redirect: 'manual' });
  const callback = page.headers.get('location') ?? '';
  const answer = await fetch(callback, { headers: { ...headers, accept: 'text/html' }, redirect: 'manual' });
  const to = answer.headers.get('location');
  if (to !== '/settings/connections') throw new Error(`The account was not connected: ${to}`);
} finally {
  await api('DELETE', path);
}

async function addressOfSignIn(): Promise<string> {
  const start = `/me/connections/${slug}/start`;
  const first = await api('POST', start, {});
  if (first.error === null) return first.data.authorizationUrl;
  const { data } = await api('GET', '/config/mcp/servers');
  const { changedIssuer: issuer } = data.servers.find((one: { slug: string }) => one.slug === slug);
  if (issuer === null) throw new Error(JSON.stringify(first.error));
  await api('PATCH', path, { issuer });
  const second = await api('POST', start, {});
  if (second.error !== null) throw new Error(JSON.stringify(second.error));
  return second.data.authorizationUrl;
}

// Parsed JSON; a wrong field shows as a scenario that fails.
// oxlint-disable-next-line typescript/no-explicit-any
async function api(method: string, at: string, body?: unknown): Promise<{ data: any; error: any }> {
  const answer = await fetch(`${origin}/api/v2${at}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return text === '' ? { data: null, error: null } : JSON.parse(text);
}
