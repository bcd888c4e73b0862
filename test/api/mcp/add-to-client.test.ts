import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { setMcpPolicy } from './agent.ts';

/** What programs need to find this installation: redirects that the provider knows. */
let h: Harness;
beforeAll(async () => {
  h = await openHarness();
  await setMcpPolicy(h);
});
afterAll(() => h.close());

/** Where the provider sends a browser that is not signed in; undefined: nowhere, because it does not know the redirect. */
async function redirectedTo(redirect: string): Promise<string | undefined> {
  const query = new URLSearchParams({
    client_id: 'postern-mcp',
    redirect_uri: redirect,
    response_type: 'code',
    scope: 'openid mcp',
    resource: `${uiOrigin}/mcp`,
    prompt: 'none',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  });
  const { location } = await new Browser(h.app.web).get(`/identity/auth?${query.toString()}`);
  return location?.split('?')[0];
}

test.each([
  ['Claude Code', 'http://localhost:54545/callback'],
  ['Codex', 'http://127.0.0.1:1455/callback'],
  ['VS Code', 'http://127.0.0.1:33418/'],
  ['Cursor', 'http://localhost:8787/callback'],
])('%s can sign people in with the client that every installation has', async (_client, redirect) => {
  expect(await redirectedTo(redirect)).toBe(redirect);
});

test('that client redirects to the same machine only', async () => {
  for (const redirect of [
    'http://127.0.0.1:33418/other',
    'https://localhost/callback',
    'http://evil.example/',
  ])
    expect(await redirectedTo(redirect)).toBeUndefined();
});
