import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { authorizeProgram, Browser, programRedirect } from '../../identity.ts';
import { exchange, refusalReason } from '../../id-tokens/exchange.ts';
import { openFrozenHarness, setPolicy } from '../access/cast.ts';
import { fetchOf, setMcpPolicy } from '../mcp/agent.ts';

/**
 * The built-in provider of another Postern as an issuer. Its ID tokens are for its own clients, and none of them can have the
 * address of this Postern as its id. So this Postern reads and verifies them, and refuses all of them.
 */
const issuerUrl = 'https://issuer.example.com';
const issuer = `${issuerUrl}/identity`;
const uiUrl = 'https://postern.example.com';
let elsewhere: Harness;
let h: Harness;
let root: Person;

beforeAll(async () => {
  elsewhere = await openFrozenHarness({ uiUrl: issuerUrl });
  await elsewhere.person('Ada');
  h = await openHarness({
    uiUrl,
    outboundFetch: (url, { headers, signal }) => fetchOf(elsewhere)(url, { headers, signal: signal ?? null }),
  });
  await setPolicy(h, { federation: { issuers: [{ url: issuer, preset: 'other' }] } });
  root = await h.person('Root', { admin: true });
});
afterAll(async () => {
  vi.useRealTimers();
  await h?.close();
  await elsewhere?.close();
});

async function idTokenOfAda(): Promise<string> {
  const ada = { email: 'ada@example.com', password: 'correct horse battery' };
  const browser = new Browser(elsewhere.app.web, issuerUrl);
  const { answer, verifier } = await authorizeProgram(browser, 'openid profile email', ada, 'allow');
  const form = {
    client_id: 'postern-cli',
    grant_type: 'authorization_code',
    code: answer.searchParams.get('code') ?? '',
    redirect_uri: programRedirect,
    code_verifier: verifier,
  };
  const given = await new Browser(elsewhere.app.web, issuerUrl).post('/identity/token', form, { origin: '' });
  return String((given.json() as Record<string, unknown>)['id_token']);
}

test('FE-02 its ID token is verified with its published keys, and refused for the audience alone', async () => {
  const rule = { issuer, claims: { name: 'Ada', email: 'ada@example.com' }, singleUse: false };
  const body = {
    name: 'deploys',
    scopes: ['repos:read'],
    repositoryAccess: { mode: 'all' },
    credential: 'federated',
    trust: [rule],
  };
  const { id } = (await h.call('POST', '/tokens', { as: root, body })).data;
  const idToken = await idTokenOfAda();
  const { outcome } = await exchange(h, idToken, id);
  expect([outcome, await refusalReason(h, root, id)]).toEqual(['400 invalid_grant', 'audience']);
  const claims = decodeJwt(idToken);
  const tried = await h.call('POST', `/tokens/${id}/trust/try`, { as: root, body: { claims } });
  expect(tried.data).toEqual({
    accepted: false,
    failed: [{ claim: 'aud', expected: uiUrl, found: 'postern-cli' }],
  });
});

test('no client of it has the address of this Postern: an id is given, or is the address of a document with a path', async () => {
  await setMcpPolicy(elsewhere, {
    clients: { registration: 'open', metadataHosts: [new URL(uiUrl).host] },
  });
  const registered = await fetchOf(elsewhere)(`${issuer}/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: uiUrl, client_name: 'x', redirect_uris: [programRedirect] }),
  });
  expect(await registered.json()).toMatchObject({ client_id: expect.stringMatching(/^mcp_/) });
  for (const clientId of [uiUrl, `${uiUrl}/`]) {
    const query = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: programRedirect,
      scope: 'openid',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
    });
    const browser = new Browser(elsewhere.app.web, issuerUrl);
    const { status, location } = await browser.get(`/identity/auth?${query.toString()}`);
    expect([clientId, status, location]).toEqual([clientId, 400, undefined]);
  }
});
