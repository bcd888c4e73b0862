import { githubRule, gitlabRule, kubernetesRule } from '../api/federation/platforms.ts';
import type { Browser } from '../faults/browser.ts';
import type { Platform } from '../id-tokens/platforms.ts';

/** Allows the issuers, whose public keys are pasted, so that nothing is fetched; returns the id of a key that publishes for them. */
export async function newFederatedKey(browser: Browser, platforms: readonly Platform[]): Promise<string> {
  const { data, headers } = await browser.api('GET', '/config/api-keys');
  const issuers = platforms.map(({ issuer, publicKey }) => ({ ...issuer, jwks: { keys: [publicKey] } }));
  const changed = { ...data.policy, federation: { issuers } };
  await browser.api('PUT', '/config/api-keys', changed, { 'if-match': String(headers['etag']) });
  const made = await browser.api('POST', '/tokens', {
    name: 'deploys',
    scopes: ['sites:write'],
    repositoryAccess: { mode: 'all' },
    credential: 'federated',
    trust: [githubRule, gitlabRule, kubernetesRule].filter(({ issuer }) =>
      platforms.some((platform) => platform.issuer.url === issuer),
    ),
  });
  if (made.status !== 201) throw new Error(made.text);
  return made.data.id;
}
