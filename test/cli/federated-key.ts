import {
  federatedKey,
  githubRule,
  gitlabRule,
  kubernetesRule,
  trusting,
} from '../api/federation/platforms.ts';
import type { Browser } from '../faults/browser.ts';
import type { Platform } from '../id-tokens/platforms.ts';

/** Trusts the issuers, and creates a key that publishes for their jobs. Returns its id. */
export async function newFederatedKey(browser: Browser, platforms: readonly Platform[]): Promise<string> {
  const { data, headers } = await browser.api('GET', '/config/api-keys');
  const changed = { ...data.policy, ...trusting(...platforms) };
  await browser.api('PUT', '/config/api-keys', changed, { 'if-match': String(headers['etag']) });
  const rules = [githubRule, gitlabRule, kubernetesRule].filter(({ issuer }) =>
    platforms.some((platform) => platform.issuer.url === issuer),
  );
  const made = await browser.api('POST', '/tokens', federatedKey(rules));
  if (made.status !== 201) throw new Error(made.text);
  return made.data.id;
}
