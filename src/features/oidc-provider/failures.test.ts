import { inject } from 'light-my-request';
import { exportJWK, generateKeyPair } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { systemRandom } from '../../core/ids.ts';
import { mountAt } from './in-process.ts';
import { createProvider } from './hardened-provider.ts';
import type { ProviderViews } from './views.ts';

const nothing = () => '';
const views: ProviderViews = {
  error: nothing,
  failed: ({ requestId }) => `a fault of ours, request ${requestId}`,
  nowhere: nothing,
  deviceExpired: nothing,
  deviceCode: nothing,
  deviceConfirm: nothing,
  deviceDone: nothing,
  signOut: nothing,
  signedOut: nothing,
  contentSecurityPolicy: "default-src 'none'",
};

/** A provider whose storage is unavailable. */
let ask: (
  path: string,
  accept: string,
) => Promise<{ status: number; type: string; text: string; requestId: unknown }>;
const logged: unknown[] = [];

beforeAll(async () => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const gone = async () => {
    throw new Error('the storage is gone');
  };
  const provider = createProvider({
    uiOrigin: 'http://localhost:3000',
    mcp: {
      address: 'http://localhost:3000/mcp',
      isEnabled: gone,
      allowsRegistration: gone,
      registered: gone,
      confirmed: gone,
      documentAllowed: gone,
      nameOf: gone,
      documents: { allowsHost: gone, allowsAny: gone, mayFetch: gone, read: gone },
      definitionsFor: gone,
      chosen: gone,
    },
    secrets: ['a secret of the tests'],
    signingKeys: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', kid: 'one', use: 'sig' }] },
    adapter: () => ({
      upsert: gone,
      find: gone,
      findByUid: gone,
      findByUserCode: gone,
      consume: gone,
      destroy: gone,
      revokeByGrantId: gone,
    }),
    findEnabledAccount: async () => undefined,
    views,
    random: systemRandom,
    freshProofMinutes: () => 0,
    isSecondFactorRequired: async () => false,
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (...line) => void logged.push(line),
    },
  });
  ask = async (path, accept) => {
    const at = { mountPath: '/identity', uiOrigin: 'http://localhost:3000', path, address: '127.0.0.1' };
    const answer = await inject(
      (request, response) => {
        response.setHeader('x-request-id', 'the-request-id');
        mountAt(provider.callback(), at, request, response);
      },
      { method: 'GET', url: path, headers: { accept } },
    );
    const { 'x-request-id': requestId, 'content-type': type } = answer.headers;
    return { status: answer.statusCode, type: String(type), text: answer.payload, requestId };
  };
});

describe('a provider that cannot keep what it must', () => {
  // Each fails at another place: while answering, and after the answer was composed.
  test.each(['/device', '/session/end'])(
    'says so at %s, with the request id, and logs the cause',
    async (path) => {
      logged.length = 0;
      const page = await ask(path, 'text/html');
      expect(page).toMatchObject({
        status: 500,
        text: 'a fault of ours, request the-request-id',
        requestId: 'the-request-id',
      });
      expect(page.type).toContain('text/html');
      const program = await ask(path, 'application/json');
      expect(program).toMatchObject({ status: 500, requestId: 'the-request-id' });
      expect(JSON.parse(program.text)).toMatchObject({ error: 'server_error' });
      expect(logged).toContainEqual([
        { err: expect.objectContaining({ message: 'the storage is gone' }), requestId: 'the-request-id' },
        'identity provider request failed',
      ]);
    },
  );
});
