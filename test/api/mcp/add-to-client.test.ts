import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { setMcpPolicy } from './agent.ts';

/** What programs need to find this installation: redirects that the provider knows, and files for a repository. */
let h: Harness;
let root: Person;
let ada: Person;
beforeAll(async () => {
  h = await openHarness();
  await setMcpPolicy(h);
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
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

test('everyone reads the files of a definition; an unknown definition or client has none', async () => {
  const { data: made } = await h.call('POST', '/config/agents/definitions', {
    as: root,
    body: {
      name: 'Review apps',
      purpose: 'Deploys branches for reviewers',
      instructions: 'Say the address.',
      tools: { get_site: 'allow' },
      clients: ['postern-mcp'],
    },
  });
  const read = (id: string, client: string) =>
    h.call('GET', `/agents/definitions/${id}/export`, { as: ada, query: { for: client } });
  const { data, text } = await read(made.id, 'claude-code');
  expect(data.files.map(({ path }: { path: string }) => path)).toEqual([
    '.mcp.json',
    '.claude/rules/postern.md',
  ]);
  expect(JSON.parse(data.files[0].content)).toEqual({
    mcpServers: {
      postern: { type: 'http', url: `${uiOrigin}/mcp`, oauth: { clientId: 'postern-mcp' } },
    },
  });
  expect(data.files[1].content).toContain('Say the address.');
  expect(text).not.toMatch(/Review apps|reviewers|@example/);
  expect((await read('agd_2mTq9ZpW1xYb7LcD5mNa', 'codex')).status).toBe(404);
  expect((await read(made.id, 'emacs')).status).toBe(400);
});
