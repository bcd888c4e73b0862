import { expect, test } from 'vitest';
import { checkMcp } from './mcp-check.ts';

const uiUrl = 'https://postern.example';
const resource = `${uiUrl}/mcp`;
const sync = 'postern-principal-sync';

/** A realm that answers with these audiences. `withScope` undefined: it gives no token with the scope. */
async function check({
  metadata = { scopes_supported: ['openid', 'mcp'] },
  always = [sync],
  withScope,
}: {
  metadata?: Record<string, unknown>;
  always?: unknown;
  withScope?: unknown;
}) {
  const audiences: Record<string, unknown> = { plain: always, scoped: withScope };
  return await checkMcp({
    uiUrl,
    client: {
      publicDocument: async () => ({ status: 200, body: metadata }),
      ownToken: async () => 'plain',
      ownTokenWith: async (scope) => (scope === 'mcp' && withScope !== undefined ? 'scoped' : undefined),
      introspect: async (token) => ({ active: true, aud: audiences[token] }),
    },
  });
}

test.each([
  ['the scope brings the audience of /mcp alone', { withScope: [sync, resource] }, { kind: 'apart' }],
  ['every token names /mcp', { always: [sync, resource] }, { kind: 'in_every_token' }],
  ['every token names /mcp, and nothing else', { always: resource }, { kind: 'in_every_token' }],
  ['the scope brings no audience', { withScope: sync }, { kind: 'not_in_token' }],
  [
    'the scope brings the audience of the API, too',
    { withScope: [sync, resource, `${uiUrl}/api/v2`] },
    { kind: 'names_both', other: `${uiUrl}/api/v2` },
  ],
  ['the reading client gets no token with the scope', {}, { kind: 'scope_unknown' }],
  ['the realm has no such scope', { metadata: {} }, { kind: 'no_scope' }],
  [
    'the realm ignores a scope that it does not have',
    { metadata: { scopes_supported: ['openid'] }, withScope: sync },
    { kind: 'no_scope' },
  ],
])('%s', async (_title, realm, audience) => {
  expect((await check(realm)).audience).toEqual(audience);
});

test('the ways to register are those that the metadata names', async () => {
  const endpoint = { registration_endpoint: 'https://id.example/register' };
  const documents = { client_id_metadata_document_supported: true };
  for (const [metadata, hasEndpoint, acceptsDocuments] of [
    [{}, false, false],
    [endpoint, true, false],
    [documents, false, true],
    [{ ...endpoint, client_id_metadata_document_supported: 'true' }, true, false],
  ] as const)
    expect((await check({ metadata })).registration).toEqual({ hasEndpoint, acceptsDocuments });
});

test('a realm that does not answer is no verdict', async () => {
  const client = {
    publicDocument: async () => ({ status: 503, body: undefined }),
    ownToken: async () => '',
    ownTokenWith: async () => undefined,
    introspect: async () => ({}),
  };
  await expect(checkMcp({ uiUrl, client })).rejects.toThrow('status_503');
});
