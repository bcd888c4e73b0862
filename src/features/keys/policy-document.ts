import type { Clock } from '../../core/clock.ts';
import type { ConfigDocument, InForce } from '../settings/settings.ts';
import { type KeyPolicy, refusalsUnder } from './key-policy.ts';
import type { KeyStore } from './key-store.ts';

/** The key policy in force, `/config/api-keys` (contract 4): reads it, changes it, and says what a change would refuse. */
export type PolicyVersion = InForce<KeyPolicy>;

/** The existing keys that could be created under the policy in force and not under the next; names at most `maxListed`. */
export type DryRun = {
  readonly keys: number;
  readonly owners: number;
  readonly refused: readonly {
    keyId: string;
    name: string;
    ownerUserId: string | null;
    reasons: readonly string[];
  }[];
};

const maxListed = 100;

export type KeyPolicies = ConfigDocument<KeyPolicy> & {
  /** What `next` would refuse that the policy in force allows; changes nothing. */
  dryRun(ifMatch: string | undefined, next: KeyPolicy): Promise<{ current: PolicyVersion; impact: DryRun }>;
};

export function createKeyPolicies(deps: {
  document: ConfigDocument<KeyPolicy>;
  read: { keys: Pick<KeyStore, 'activeAfter'> };
  clock: Clock;
}): KeyPolicies {
  const { document, read, clock } = deps;

  async function impactOf(current: KeyPolicy, next: KeyPolicy): Promise<DryRun> {
    const now = clock.now();
    const refused: DryRun['refused'][number][] = [];
    const owners = new Set<string>();
    let keys = 0;
    let after: string | null = null;
    for (;;) {
      const page = await read.keys.activeAfter(after, 500, now);
      for (const key of page) {
        const issued = {
          type: key.type,
          scopes: key.scopes,
          repositoryMode: key.repositories.mode,
          repositoryCount: key.repositories.mode === 'all' ? 0 : key.repositories.repositoryIds.length,
          lifetimeMs: key.lifetimeMs,
          expiresAt: key.expiresAt,
        };
        const already = refusalsUnder(current, issued);
        const reasons = refusalsUnder(next, issued).filter((reason) => !already.includes(reason));
        if (reasons.length === 0) continue;
        keys += 1;
        owners.add(key.ownerUserId ?? key.id);
        if (refused.length < maxListed) {
          refused.push({ keyId: key.id, name: key.name, ownerUserId: key.ownerUserId, reasons });
        }
      }
      const last = page.at(-1);
      if (last === undefined) return { keys, owners: owners.size, refused };
      after = last.id;
    }
  }

  return {
    ...document,
    async dryRun(ifMatch, next) {
      const current = await document.matched(ifMatch);
      return { current, impact: await impactOf(current.value, next) };
    },
  };
}
