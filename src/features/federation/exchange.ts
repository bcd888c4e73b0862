import { actorOf, anonymous, type Exchange, type RequestOrigin } from '../../core/caller.ts';
import { type Clock, minute, second, timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Random } from '../../core/ids.ts';
import { safeText } from '../../core/safe-text.ts';
import type { Tx } from '../../platform/database/database.ts';
import { createFairQueue } from '../../platform/fair-queue.ts';
import type { AuditWriter, Denials } from '../audit/audit.ts';
import {
  digestOf,
  longestMaxAgeMinutes,
  type ExchangedTokenStore,
  type ExchangeRefusal,
  type KeyFormat,
  type KeyPolicies,
  type KeyState,
  type Preset,
  statusOf,
  textOf,
  tokenIdOf,
} from '../keys/keys.ts';
import { addressBucket, type RateLimiter, retryAfterSeconds } from '../rate-limit/rate-limit.ts';
import {
  acceptingRule,
  clockSkewMs,
  type FindSigningKey,
  type VerifiedIdToken,
  verifyIdToken,
} from './id-token.ts';

/**
 * Exchanges the ID token of a pipeline for a token of a service key (RFC 8693). Creates no key. The token commits with its
 * audit event and with the id of the ID token, so that one ID token never gives two tokens where the rule allows one.
 */
export type Exchanges = {
  /** Rejects with `invalid_credential` for every ID token that is not accepted, whatever the reason. */
  exchange(idToken: string, keyId: string, origin: RequestOrigin): Promise<Exchanged>;
};

export type Exchanged = { readonly value: string; readonly seconds: number };

type Stores = { exchanged: Pick<ExchangedTokenStore, 'holdKey' | 'insert'>; audit: AuditWriter };

/** The highest maximum age of a rule: no rule accepts an older ID token, so its id need not be stored any longer. */
const maxAgeMs = longestMaxAgeMinutes * minute;
/** It is remembered this much longer: an exchange that found it current may still wait for its turn or for the database. */
const waitMs = minute;
/** Successful exchanges of one key a minute, besides the rate limit of the key. */
const exchangesPerMinute = 60;

const refused = new AppError('invalid_credential', {
  message: 'The ID token was not accepted for this key.',
  hint: 'An administrator finds the reason by the request id.',
});

/** Claims that say which job it was. */
const jobClaims: Readonly<Record<Preset, Partial<Record<'repository' | 'ref' | 'run', string>>>> = {
  github: { repository: 'repository', ref: 'ref', run: 'run_id' },
  gitlab: { repository: 'project_path', ref: 'ref', run: 'pipeline_id' },
  kubernetes: { run: '/kubernetes.io/pod/name' },
  other: {},
};

export function createExchanges(deps: {
  read: { exchanged: Pick<ExchangedTokenStore, 'findKey'> };
  tx: Tx<Stores>;
  policies: Pick<KeyPolicies, 'inForce'>;
  findKey: FindSigningKey;
  /** SERVICE_UI_URL: the audience of every ID token. */
  audience: string;
  format: Pick<KeyFormat, 'generateExchangedToken'>;
  limiter: Pick<RateLimiter, 'spend'>;
  /** Counts a bad credential of an address, and returns the error that refuses it. */
  refuse: (origin: RequestOrigin, refusal: AppError) => AppError;
  denials: Pick<Denials, 'record'>;
  /** `unavailable`: the issuer has no current keys here. */
  count: (result: 'exchanged' | 'unavailable' | ExchangeRefusal) => void;
  clock: Clock;
  random: Random;
}): Exchanges {
  const { read, tx, policies, findKey, audience, format, limiter, denials, clock, random } = deps;
  const verifications = createFairQueue({ width: 16, perSender: 8, queue: 512 });

  function refusal(reason: ExchangeRefusal, keyId: string, origin: RequestOrigin): AppError {
    deps.count(reason);
    const answer = deps.refuse(origin, refused);
    // The sender chooses the id of the key. A throttled one, whose events differ in it, would otherwise fill the audit log.
    if (answer === refused)
      denials.record({
        event: 'api_key.exchange_refused',
        reason,
        auditContext: { actor: actorOf(anonymous), origin },
        target: { kind: 'api_key', id: keyId },
      });
    return answer;
  }

  async function spend(owner: string, key: string, limit: number): Promise<void> {
    const spent = await limiter.spend({ owner, key, limit });
    if (!spent.allowed)
      throw new AppError('rate_limited', {
        message: `Too many exchanges and requests with this key: ${limit} are allowed in any 60 seconds.`,
        retryAfterSeconds: retryAfterSeconds(spent),
      });
  }

  return {
    async exchange(idToken, keyId, origin) {
      const { value: policy } = await policies.inForce();
      const { issuers } = policy.federation;
      const now = clock.now();
      const isUsable = (key: KeyState) =>
        key.type === 'service' && statusOf(key, now) === 'active' && policy.authentication.service;

      const token = await verifications(addressBucket(origin.address), () =>
        verifyIdToken(idToken, { issuers, findKey, audience, now }),
      );
      if (token.kind === 'unavailable') {
        deps.count('unavailable');
        throw new AppError('store_unavailable', {
          message: 'Postern has no current keys of the issuer of this ID token.',
        });
      }
      if (token.kind === 'refused') throw refusal(token.reason, keyId, origin);
      const id = { issuer: token.issuer.url, jti: tokenIdOf(token.claims) };
      const key = await read.exchanged.findKey(keyId, id);
      if (key === undefined || !isUsable(key)) throw refusal('key_inactive', keyId, origin);
      const found = acceptingRule(token, key.rules, now);
      if (found.kind === 'refused') throw refusal(found.reason, keyId, origin);
      const { rule, jti } = found;
      // Before the limits: a client that sends a used token again must not use up the exchanges of the key.
      if (jti !== null && key.isUsed) throw refusal('replayed', keyId, origin);
      await spend(`exchange ${keyId}`, keyId, exchangesPerMinute);
      await spend(keyId, keyId, policy.rateLimitPerMinute);

      const { value, id: tokenId } = format.generateExchangedToken(random);
      const expiresAt = Math.min(
        now + rule.maxTtlMinutes * minute,
        key.expiresAt ?? Number.POSITIVE_INFINITY,
      );
      const job: Exchange = { tokenId, ...jobOf(token), expiresAt };
      const reason = await tx(async (stores): Promise<ExchangeRefusal | null> => {
        // Under the lock, a revocation or a removed rule comes before this and refuses it, or after it and ends the token.
        const held = await stores.exchanged.holdKey(keyId, rule.id);
        if (held === undefined) return 'claim';
        if (!isUsable(held)) return 'key_inactive';
        const until = Math.min(token.expiresAt, token.issuedAt + maxAgeMs) + clockSkewMs + waitMs;
        const made = { ...job, digest: digestOf(value), keyId, ruleId: rule.id };
        const once = jti === null ? null : { jti, until };
        if (!(await stores.exchanged.insert(made, once))) return 'replayed';
        await stores.audit.append({
          event: 'api_key.exchanged',
          auditContext: {
            actor: { kind: 'service_key', id: keyId, name: key.name, credential: keyId },
            origin,
          },
          target: { kind: 'api_key', id: keyId },
          outcome: 'success',
          details: { ...job, expiresAt: timestamp(expiresAt), ruleId: rule.id },
          keyIds: [keyId],
        });
        return null;
      });
      if (reason !== null) throw refusal(reason, keyId, origin);
      deps.count('exchanged');
      return { value, seconds: Math.floor((expiresAt - now) / second) };
    },
  };
}

function jobOf({ issuer, claims }: VerifiedIdToken): Omit<Exchange, 'tokenId' | 'expiresAt'> {
  const names = jobClaims[issuer.preset];
  const textIn = (name: string | undefined) => {
    const text = name === undefined ? null : textOf(claims, name);
    return text === null ? null : safeText(text.slice(0, 200));
  };
  return {
    issuer: issuer.url,
    repository: textIn(names.repository),
    ref: textIn(names.ref),
    run: textIn(names.run),
  };
}
