import { expect, onTestFinished, test, vi } from 'vitest';
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

test('an authorization server that does not answer is asked about a few tokens, and never for long', async () => {
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

test('one that offers no revocation loses nothing', async () => {
  const { revocation_endpoint: _, ...rest } = metadata;
  const fetch: Fetch = async () => json(rest);
  const oauth = createExternalOAuth({ fetch, clock: { now: () => 0 } });
  expect(await oauth.revoke(issuer, tokens)).toBe(0);
});
