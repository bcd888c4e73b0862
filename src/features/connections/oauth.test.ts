import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Fetch } from '../../platform/fetch.ts';
import { createExternalOAuth, type OAuthTokens } from './oauth.ts';

const issuer = 'https://login.example';
const metadata = {
  issuer,
  token_endpoint: `${issuer}/token`,
  revocation_endpoint: `${issuer}/revocation`,
  response_types_supported: ['code'],
};
const tokens: OAuthTokens[] = Array.from({ length: 20 }, (_, count) => ({
  accessToken: `access-${count}`,
  refreshToken: `refresh-${count}`,
  endsAt: null,
  resource: 'https://mcp.example/',
  registration: { clientId: 'client', clientSecret: null },
}));
const json = (value: unknown) =>
  new Response(JSON.stringify(value), { headers: { 'content-type': 'application/json' } });

test('every refresh token and every access token is revoked', async () => {
  const sent: string[] = [];
  const fetch: Fetch = async (url, { body }) => {
    if (url.includes('.well-known')) return json(metadata);
    sent.push(new URLSearchParams(String(body)).get('token') ?? '');
    return json({});
  };
  const oauth = createExternalOAuth({ fetch, clock: { now: () => 0 } });
  expect(await oauth.revoke(issuer, tokens)).toBe(0);
  const held = tokens.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken]);
  expect(new Set(sent)).toEqual(new Set(held));
});

test('an authorization server that does not answer gets few requests, within the time limit', async () => {
  let asked = 0;
  const fetch: Fetch = async (url, { signal }) => {
    signal?.throwIfAborted();
    if (url.includes('.well-known')) return json(metadata);
    asked += 1;
    const { promise, reject } = Promise.withResolvers<Response>();
    signal?.addEventListener('abort', reject);
    return await promise;
  };
  const limit = new AbortController();
  // The first limit is that of all tokens together; each request has its own.
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(limit.signal);
  onTestFinished(() => timeout.mockRestore());
  const oauth = createExternalOAuth({ fetch, clock: { now: () => 0 } });
  const lost = oauth.revoke(issuer, tokens);
  await expect.poll(() => asked).toBe(8);
  limit.abort();
  expect(await lost).toBe(20);
  expect(asked).toBe(8);
});

test('an authorization server without revocation counts as a success', async () => {
  const { revocation_endpoint: _, ...rest } = metadata;
  const fetch: Fetch = async () => json(rest);
  const oauth = createExternalOAuth({ fetch, clock: { now: () => 0 } });
  expect(await oauth.revoke(issuer, tokens)).toBe(0);
});

describe('metadata of a server and its authorization server', () => {
  const server = { name: 'Tracker', url: 'https://mcp.example/mcp' };
  const document = (scopes: string[]) => ({
    resource: server.url,
    authorization_servers: [issuer],
    scopes_supported: scopes,
  });

  /** A server whose challenge has these parameters, and that answers these documents by address. */
  const serverWith = (challenge: string | null, documents: Record<string, unknown>) => {
    const asked: string[] = [];
    const fetch: Fetch = async (url, { method }) => {
      asked.push(`${method} ${url}`);
      if (url === server.url)
        return new Response(null, {
          status: 401,
          headers: challenge === null ? {} : { 'www-authenticate': challenge },
        });
      const found = documents[url];
      return found === undefined ? new Response(null, { status: 404 }) : json(found);
    };
    return { oauth: createExternalOAuth({ fetch, clock: { now: () => 0 } }), asked };
  };
  const wellKnown = 'https://mcp.example/.well-known/oauth-protected-resource';

  test('the challenge names the metadata and the scopes, before any well-known address', async () => {
    const own = 'https://mcp.example/somewhere/metadata.json';
    const { oauth, asked } = serverWith(
      `Bearer resource_metadata="${own}", scope="issues:read issues:write"`,
      {
        [own]: document(['everything']),
        [`${wellKnown}/mcp`]: { ...document([]), authorization_servers: ['https://other.example'] },
      },
    );
    expect(await oauth.discover(server)).toEqual({
      issuer,
      resource: server.url,
      scopes: ['issues:read', 'issues:write'],
    });
    expect(asked).toEqual([`POST ${server.url}`, `GET ${own}`]);
  });

  test.each([
    ['no challenge', null],
    ['a challenge without metadata', 'Bearer'],
    ['metadata at another origin', 'Bearer resource_metadata="https://evil.example/metadata"'],
    ['metadata that is not there', 'Bearer resource_metadata="https://mcp.example/gone"'],
  ])('with %s, Postern reads the well-known addresses', async (_what, challenge) => {
    const { oauth, asked } = serverWith(challenge, { [wellKnown]: document(['issues:read']) });
    expect(await oauth.discover(server)).toMatchObject({ issuer, scopes: ['issues:read'] });
    expect(asked.join(' ')).not.toContain('evil');
  });

  /** An authorization server that records its requests. */
  const authorizationServer = (more: Record<string, unknown>, registered: Record<string, unknown> = {}) => {
    const sent: { url: string; headers: Record<string, string>; body: string }[] = [];
    const fetch: Fetch = async (url, { headers, body }) => {
      if (url.includes('.well-known'))
        return json({
          ...metadata,
          authorization_endpoint: `${issuer}/authorize`,
          registration_endpoint: `${issuer}/register`,
          ...more,
        });
      sent.push({ url, headers: headers ?? {}, body: String(body) });
      if (url.endsWith('/register'))
        return new Response(JSON.stringify({ client_id: 'postern-there', ...registered }), {
          status: 201,
          headers: { 'content-type': 'application/json' },
        });
      return json({ access_token: 'access', token_type: 'bearer', expires_in: 60 });
    };
    return { oauth: createExternalOAuth({ fetch, clock: { now: () => 0 } }), sent };
  };

  test.each([
    [undefined, 'none'],
    [['none', 'client_secret_post'], 'none'],
    [['client_secret_basic'], 'client_secret_basic'],
    [['private_key_jwt', 'client_secret_post'], 'client_secret_post'],
  ])('Postern registers for one of the methods %j: %s', async (supported, method) => {
    const { oauth, sent } = authorizationServer({ token_endpoint_auth_methods_supported: supported });
    await oauth.register(issuer, 'https://postern.example/callback');
    expect(JSON.parse(sent[0]?.body ?? '')).toMatchObject({
      token_endpoint_auth_method: method,
      application_type: 'web',
    });
  });

  test('with a redirect to the loopback address Postern is a native application', async () => {
    const { oauth, sent } = authorizationServer({});
    await oauth.register(issuer, 'http://localhost:3000/callback');
    expect(JSON.parse(sent[0]?.body ?? '')).toMatchObject({ application_type: 'native' });
  });

  test('a registered secret needs no expiry time', async () => {
    const { oauth } = authorizationServer({}, { client_secret: 'secret-there' });
    expect(await oauth.register(issuer, 'https://postern.example/callback')).toEqual({
      clientId: 'postern-there',
      clientSecret: 'secret-there',
    });
  });

  test('an authorization server that registers no clients is refused with the fix', async () => {
    const { oauth } = authorizationServer({ registration_endpoint: undefined });
    await expect(oauth.register(issuer, 'https://postern.example/callback')).rejects.toMatchObject({
      code: 'external_server_unavailable',
      message: 'The authorization server of the server registers no clients.',
      hint: expect.stringContaining('client id and secret'),
    });
  });

  test.each([
    [undefined, 'basic'],
    [['client_secret_post', 'client_secret_basic'], 'basic'],
    [['client_secret_post'], 'post'],
  ])('a secret is sent by the method of the metadata, %j: %s', async (supported, method) => {
    const { oauth, sent } = authorizationServer({ token_endpoint_auth_methods_supported: supported });
    const registration = { clientId: 'postern-there', clientSecret: 'secret-there' };
    const [first] = tokens;
    if (first === undefined) throw new Error('There are tokens.');
    await oauth.refresh(issuer, { ...first, registration });
    const [{ headers, body } = { headers: {}, body: '' }] = sent;
    const { authorization } = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const basic = `Basic ${Buffer.from('postern-there:secret-there').toString('base64')}`;
    expect([authorization, body.includes('secret-there')]).toEqual(
      method === 'basic' ? [basic, false] : [undefined, true],
    );
  });
});
