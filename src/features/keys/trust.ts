import type { AuditContext } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { requireActive, within } from './key-reach.ts';
import type { KeyStore } from './key-store.ts';
import type { KeyPolicies } from './policy-document.ts';
import {
  audienceOf,
  type FailedClaim,
  failedClaims,
  maxTrustRules,
  textOf,
  tokenIdOf,
  toTrustRule,
  type TrustRequest,
  type TrustRule,
} from './trust-rule.ts';
import type { TrustStore } from './trust-store.ts';

/**
 * The trust rules of service keys: which ID tokens of which platform a key accepts. Promises: a rule is valid under the key
 * policy when it is added; every change commits with its audit event, and every process learns of it within a second.
 */
export type Trust = {
  list(keyId: string): Promise<readonly TrustRule[]>;
  add(auditContext: AuditContext, keyId: string, asked: TrustRequest): Promise<TrustRule>;
  remove(auditContext: AuditContext, keyId: string, ruleId: string): Promise<void>;
  /** Compares claims with `asked`, or with each rule of the key. Changes nothing. */
  compare(keyId: string, asked: TrustRequest | undefined, claims: object): Promise<TrustVerdict>;
};

export type TrustVerdict = { readonly accepted: boolean; readonly failed: readonly FailedClaim[] };

type Stores = { keys: KeyStore; trust: TrustStore; audit: AuditWriter; changes: ChangeStore };

export function createTrust(deps: {
  read: { keys: Pick<KeyStore, 'get'>; trust: Pick<TrustStore, 'list'> };
  tx: Tx<Stores>;
  policies: Pick<KeyPolicies, 'inForce'>;
  /** SERVICE_UI_URL: the audience of every ID token. */
  audience: string;
  clock: Clock;
  random: Random;
  setStamp: (owner: string, keyId: string) => Promise<void>;
}): Trust {
  const { read, tx, policies, audience, clock, random, setStamp } = deps;

  const requireServiceKey = async (id: string) => void within({ kind: 'service' }, await read.keys.get(id));

  async function changed(
    stores: Stores,
    auditContext: AuditContext,
    keyId: string,
    reason: 'added' | 'removed',
    rule: TrustRule,
  ): Promise<void> {
    await stores.audit.append({
      event: 'api_key.trust_changed',
      auditContext,
      target: { kind: 'api_key', id: keyId },
      outcome: 'success',
      reason,
      details: { rule },
      keyIds: [keyId],
    });
    await stores.changes.publish({ topic: 'key', subject: keyId });
  }

  return {
    async list(keyId) {
      await requireServiceKey(keyId);
      return await read.trust.list(keyId);
    },

    async add(auditContext, keyId, asked) {
      const { value: policy } = await policies.inForce();
      const rule = { id: newId(random, 'rul'), ...toTrustRule(policy.federation.issuers, asked) };
      return await tx(async (stores) => {
        const now = clock.now();
        const key = within({ kind: 'service' }, await stores.keys.getForUpdate(keyId));
        requireActive(key, now);
        if (key.trustRules >= maxTrustRules)
          throw new AppError('state_conflict', {
            message: `The key has ${key.trustRules} trust rules; at most ${maxTrustRules} are allowed.`,
            hint: 'Remove a rule first.',
            details: { limit: maxTrustRules },
          });
        await stores.trust.add(keyId, rule, now, auditContext.actor.id);
        await changed(stores, auditContext, keyId, 'added', rule);
        return rule;
      });
    },

    async remove(auditContext, keyId, ruleId) {
      await tx(async (stores) => {
        within({ kind: 'service' }, await stores.keys.getForUpdate(keyId));
        const rule = await stores.trust.remove(keyId, ruleId);
        if (rule === undefined)
          throw new AppError('not_found', { message: 'The key has no such trust rule.' });
        await changed(stores, auditContext, keyId, 'removed', rule);
      });
      await setStamp(keyId, keyId);
    },

    async compare(keyId, asked, claims) {
      await requireServiceKey(keyId);
      const { issuers } = (await policies.inForce()).value.federation;
      const rules = asked === undefined ? await read.trust.list(keyId) : [toTrustRule(issuers, asked)];
      const [nearest] = rules
        .map((rule) => differences(rule, claims))
        .toSorted((one, other) => distance(one) - distance(other));
      if (nearest === undefined)
        throw new AppError('state_conflict', {
          message: 'The key has no trust rule.',
          hint: 'Send the rule to try in the field rule.',
        });
      return { accepted: nearest.length === 0, failed: nearest };

      function differences(rule: Omit<TrustRule, 'id'>, found: object): FailedClaim[] {
        const issuer = issuers.find(({ url }) => url === rule.issuer);
        // An administrator removed the issuer from the policy, which ends its rules.
        if (issuer === undefined)
          return [{ claim: 'iss', expected: 'an issuer of the key policy', found: textOf(found, 'iss') }];
        const always = [
          { claim: 'iss', expected: rule.issuer, found: textOf(found, 'iss') },
          { claim: 'aud', expected: audience, found: audienceOf(found) },
        ];
        return [
          ...always.filter(({ expected, found: text }) => text !== expected),
          ...(rule.singleUse && tokenIdOf(found) === null
            ? [
                {
                  claim: 'jti',
                  expected: 'an id, because the rule allows one exchange of an ID token',
                  found: textOf(found, 'jti'),
                },
              ]
            : []),
          ...failedClaims(issuer.preset, rule, found),
        ];
      }
    },
  };
}

/** A rule of the issuer of the token is nearer than each rule of another one. */
function distance(failed: readonly FailedClaim[]): number {
  return failed.length + (failed.some(({ claim }) => claim === 'iss') ? 100 : 0);
}
