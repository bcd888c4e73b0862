import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { minute } from '../../src/core/clock.ts';
import { networkFetch } from '../../src/platform/fetch.ts';
import { setPolicy } from '../api/access/cast.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../harness.ts';
import { exchange, refusalReason } from '../id-tokens/exchange.ts';
import { keycloakUrl, openRealm, type Realm } from './realm.ts';

/** A realm as an issuer: its service accounts exchange their access tokens, which are JWTs, for tokens of a key. */
const frontendUrl = 'https://keycloak.example.com';
const elsewhere = 'https://other.example.com';
const secret = 'secret-of-a-service-account';

/** A service account whose tokens have these audiences, and the claim `project`. */
const serviceAccount = (clientId: string, ...audiences: string[]) => ({
  clientId,
  secret,
  serviceAccountsEnabled: true,
  standardFlowEnabled: false,
  fullScopeAllowed: false,
  defaultClientScopes: ['basic'],
  optionalClientScopes: [],
  protocolMappers: [
    ...audiences.map((audience) =>
      mapper(`for ${audience}`, 'oidc-audience-mapper', { 'included.custom.audience': audience }),
    ),
    mapper('project', 'oidc-hardcoded-claim-mapper', {
      'claim.name': 'project',
      'claim.value': 'shop',
      'jsonType.label': 'String',
    }),
  ],
});
const mapper = (name: string, protocolMapper: string, config: Record<string, string>) => ({
  name,
  protocol: 'openid-connect',
  protocolMapper,
  config: { 'access.token.claim': 'true', ...config },
});

describe.skipIf(keycloakUrl === null)('Keycloak as an issuer of ID tokens', () => {
  let realm: Realm;
  let h: Harness;
  let root: Person;
  let issuer: string;
  let keyId: string;
  beforeAll(async () => {
    realm = await openRealm((file) => {
      file.attributes = { ...file.attributes, frontendUrl };
      file.clients.push(
        serviceAccount('pipeline', uiOrigin),
        serviceAccount('other-pipeline', uiOrigin),
        serviceAccount('pipeline-elsewhere', elsewhere),
        serviceAccount('pipeline-everywhere', uiOrigin, elsewhere),
        serviceAccount('pipeline-nowhere'),
      );
    });
    issuer = `${frontendUrl}/realms/${realm.name}`;
    h = await openHarness({
      outboundFetch: (url, init) => networkFetch(url.replace(frontendUrl, keycloakUrl ?? ''), init),
    });
    h.clock.set(Date.now());
    await setPolicy(h, { federation: { issuers: [{ url: issuer, preset: 'other' }] } });
    root = await h.person('Root', { admin: true });
  });
  beforeEach(async () => {
    const body = {
      name: 'deploys',
      scopes: ['repos:read'],
      repositoryAccess: { mode: 'all' },
      credential: 'federated',
      trust: [{ issuer, claims: { azp: 'pipeline', project: 'shop' } }],
    };
    keyId = (await h.call('POST', '/tokens', { as: root, body })).data.id;
  });
  afterAll(async () => {
    await h?.close();
    await realm?.close();
  });

  async function tokenOf(client: string): Promise<string> {
    const token = await realm.serviceToken(client, secret);
    // Keycloak has the real time, and a test may be ahead of it.
    h.clock.set(Math.max(h.clock.now(), Date.now()));
    return token;
  }

  test('a service account exchanges its token, which the published keys verify', async () => {
    const { outcome, token } = await exchange(h, await tokenOf('pipeline'), keyId);
    expect(outcome).toBe('200');
    const { data } = await h.call('GET', '/auth/context', { as: `Bearer ${token}` });
    expect(data).toMatchObject({
      authMethod: 'federated',
      keyId,
      act: { issuer, repository: null, ref: null, run: null },
    });
  });

  test.each([
    ['audience', 'pipeline-elsewhere'],
    ['audience', 'pipeline-everywhere'],
    ['audience', 'pipeline-nowhere'],
    ['claim', 'other-pipeline'],
  ])('FE-02 it is refused for the reason %s to the client %s', async (reason, client) => {
    const { outcome } = await exchange(h, await tokenOf(client), keyId);
    expect([outcome, await refusalReason(h, root, keyId)]).toEqual(['400 invalid_grant', reason]);
  });

  test('FE-07 a new key of the realm is accepted after the one fetch of a minute, and the former one until it is withdrawn', async () => {
    h.clock.advance(minute);
    await h.app.jobs.runNow('issuer-keys');
    const [former, withdrawn] = [await tokenOf('pipeline'), await tokenOf('pipeline')];
    const keys = await realm.find('/components?type=org.keycloak.keys.KeyProvider');
    const key = keys.find(({ providerId }: { providerId: string }) => providerId === 'rsa-generated');
    const { id: parentId } = await realm.find('');
    await realm.admin('POST', '/components', {
      name: 'next',
      parentId,
      providerId: 'rsa-generated',
      providerType: 'org.keycloak.keys.KeyProvider',
      config: { priority: ['200'], algorithm: ['RS256'] },
    });
    const next = await tokenOf('pipeline');
    expect(decodeProtectedHeader(next).kid).not.toBe(decodeProtectedHeader(former).kid);
    expect((await exchange(h, next, keyId)).outcome).toBe('400 invalid_grant');
    h.clock.advance(minute);
    expect((await exchange(h, next, keyId)).outcome).toBe('200');
    expect((await exchange(h, former, keyId)).outcome).toBe('200');

    const config = { ...key.config, active: ['false'], enabled: ['false'] };
    await realm.admin('PUT', `/components/${key.id}`, { ...key, config });
    h.clock.advance(minute);
    await h.app.jobs.runNow('issuer-keys');
    const { outcome } = await exchange(h, withdrawn, keyId);
    expect([outcome, await refusalReason(h, root, keyId)]).toEqual(['400 invalid_grant', 'bad_signature']);
  });
});
