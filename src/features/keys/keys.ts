import type { AuditContext, Actor, Caller, KeyType, UserRef } from '../../core/caller.ts';
import { type Clock, hour, second, timestampOrNull } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Scope } from '../../core/scopes.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import { createFairQueue } from '../../platform/fair-queue.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { addressBucket } from '../rate-limit/rate-limit.ts';
import type { Repository } from '../repositories/repositories.ts';
import type { ExchangedTokens } from './exchanged-tokens.ts';
import { type Key, type RevokeReason, statusOf } from './key.ts';
import {
  checkRepositories,
  decideExpiry,
  decideScopes,
  type KeyPolicy,
  type LifetimeRequest,
} from './key-policy.ts';
import type { KeyFilter, KeyOrder } from './key-list.ts';
import { isWithin, type Reach, requireActive, within } from './key-reach.ts';
import type { KeyStore, NewKey } from './key-store.ts';
import { digestOf, type KeyFormat } from './key-value.ts';
import {
  narrowExpiry,
  narrowRepositories,
  narrowScopes,
  successorExpiry,
  successorRepositories,
  successorScopes,
} from './narrowing.ts';
import type { KeyPolicies } from './policy-document.ts';
import { publicKeyOf, type Sealed, type SealTo, seal } from './sealed-delivery.ts';
import { toTrustRule, type TrustRequest, type TrustRule } from './trust-rule.ts';
import type { TrustStore } from './trust-store.ts';

export { keyAndPredecessors } from './key-store.ts';
export type { Reach } from './key-reach.ts';
export type { KeyFormat } from './key-value.ts';
export { digestOf } from './key-value.ts';
export { statusOf } from './key.ts';
export type { ExchangeRefusal } from './exchange-refusals.ts';
export type { ExchangedTokenStore, KeyState } from './exchanged-token-store.ts';
export type { KeyPolicies } from './policy-document.ts';
export {
  audienceOf,
  failedClaims,
  longestMaxAgeMinutes,
  textOf,
  tokenIdOf,
  type TrustRule,
} from './trust-rule.ts';
export { type Preset, type SigningKey, signingKeySchema, type TrustedIssuer } from './trusted-issuer.ts';

/**
 * API keys: issues, narrows, rotates and revokes them (contract 4). Promises: the value is returned once, in the answer
 * to the request that created it, and only encrypted if the request has a public key; an edit only narrows; a
 * revocation is final before the answer is sent; every change
 * commits with its audit event. verifier.ts verifies presented values; key-policy.ts has the rules for issuing.
 */
export type RepositorySelection =
  | { readonly mode: 'all' }
  | { readonly mode: 'selected'; readonly repositories: readonly string[] };

export type KeyRequest = LifetimeRequest & {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly repositoryAccess: RepositorySelection;
  readonly sealTo?: SealTo | undefined;
  /** For service keys. */
  readonly trust?: readonly TrustRequest[] | undefined;
};

export type NarrowRequest = LifetimeRequest & {
  readonly name?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly repositoryAccess?: RepositorySelection | undefined;
  /** Erases the value for ever. The key keeps its id, its rules and its sites. */
  readonly credential?: 'federated' | undefined;
};

export type RotateRequest = Omit<NarrowRequest, 'credential'> & {
  readonly sealTo?: SealTo | undefined;
  readonly deadlineHours: number;
  readonly graceSeconds: number;
};

/**
 * The only place that holds the value: it is not in the key, the database or the log. `sealed` is what the response of a
 * request with `sealTo` has instead of it.
 */
export type IssuedKey = { readonly key: Key; readonly value: string; readonly sealed?: Sealed };

/** Who a new key belongs to. */
export type KeyOwner = { readonly type: 'personal'; readonly userId: string } | { readonly type: 'service' };

export type Keys = {
  create(auditContext: AuditContext, owner: KeyOwner, request: KeyRequest): Promise<IssuedKey>;
  /** Creates a service key without a value. */
  createFederated(auditContext: AuditContext, request: Omit<KeyRequest, 'sealTo'>): Promise<Key>;
  list(
    filter: KeyFilter,
    order: KeyOrder,
    page: number,
    limit: number,
  ): Promise<{ items: Key[]; total: number }>;
  /** The keys among `ids` that are within reach. */
  which(reach: Reach, ids: readonly string[]): Promise<readonly Key[]>;
  get(reach: Reach, id: string): Promise<Key>;
  narrow(auditContext: AuditContext, reach: Reach, id: string, request: NarrowRequest): Promise<Key>;
  rotate(
    auditContext: AuditContext,
    reach: Reach,
    id: string,
    request: RotateRequest,
  ): Promise<IssuedKey & { predecessorEndsAt: number }>;
  /** Idempotent: for a revoked key it returns the time at which the key was revoked. */
  revoke(
    auditContext: AuditContext,
    reach: Reach,
    id: string,
    reason: RevokeReason,
    /** The reason in the caller's own words; recorded in the audit log. */
    note?: string,
  ): Promise<{ id: string; revokedAt: number }>;
  /** Revokes every active key of a person, for a leak of unknown extent. One event for each key. */
  revokeAll(
    auditContext: AuditContext,
    userId: string,
  ): Promise<readonly { id: string; revokedAt: number }[]>;
  /**
   * Revokes the key with this value, or ends this exchanged token alone; possession is the proof. Does not reveal whether the
   * value was a key. Look-ups go through a fair queue by address, so that guessing slows down only the address that guesses.
   */
  revokeSelf(value: string, origin: AuditContext['origin']): Promise<void>;
  /** Records the first use of a successor, which starts its predecessor's grace. Safe to repeat. */
  recordFirstUse(id: string, at: number): Promise<void>;
  countActive(userId: string): Promise<number>;
};

type Stores = {
  keys: KeyStore;
  trust: TrustStore;
  repositories: { findAll(names: readonly string[]): Promise<Repository[]> };
  audit: AuditWriter;
  changes: ChangeStore;
};

export type KeyDeps = {
  read: { keys: KeyStore };
  tx: Tx<Stores>;
  feed: Pick<ChangeFeed, 'announce'>;
  policies: Pick<KeyPolicies, 'inForce'>;
  findUser: (userId: string) => Promise<UserRef | undefined>;
  endExchanged: ExchangedTokens['end'];
  format: KeyFormat;
  /** Database-corrected time (contract 10.5). */
  clock: Clock;
  random: Random;
  /** Notifies every process through the key-value store. If that fails, the change feed still notifies them (contract 10.2). */
  setStamp: (owner: string, keyId: string) => Promise<void>;
};

export function createKeys(deps: KeyDeps): Keys {
  const { read, tx, feed, policies, findUser, endExchanged, format, clock, random, setStamp } = deps;
  const selfRevocations = createFairQueue({ width: 8, perSender: 4, queue: 256 });

  /** Call after the commit: other processes drop the key from their caches by stamp or feed within a second. */
  async function spread(key: Pick<Key, 'id' | 'type' | 'ownerUserId'>): Promise<void> {
    await setStamp(key.type === 'service' ? key.id : (key.ownerUserId ?? key.id), key.id);
  }

  async function issue(
    stores: Stores,
    owner: KeyOwner,
    plan: Plan,
    replaces: string | null,
    sealTo: SealTo | undefined,
  ): Promise<IssuedKey> {
    const { value, id } = format.generate(owner.type, random);
    // Seal first: without a usable public key, no one could read the value of the stored key.
    const sealed = sealTo === undefined ? undefined : await seal(value, sealTo);
    const key = await insert(stores, owner, plan, { id, digest: digestOf(value), replaces });
    return { key, value, ...(sealed === undefined ? {} : { sealed }) };
  }

  async function insert(
    stores: Stores,
    owner: KeyOwner,
    plan: Plan,
    identity: Pick<NewKey, 'id' | 'digest' | 'replaces'>,
  ): Promise<Key> {
    await stores.keys.insert({
      ...identity,
      type: owner.type,
      name: plan.name,
      scopes: plan.scopes,
      repositoryIds: plan.repositoryIds,
      ownerUserId: owner.type === 'personal' ? owner.userId : null,
      createdAt: plan.now,
      createdBy: plan.createdBy,
      lifetimeMs: plan.expiresAt === null ? null : plan.expiresAt - plan.now,
      expiresAt: plan.expiresAt,
    });
    for (const rule of plan.trust) await stores.trust.add(identity.id, rule, plan.now, plan.createdBy);
    return await mustGet(stores.keys, identity.id);
  }

  /** `put` stores the key, with a value or without. */
  async function create<Issued extends { readonly key: Key }>(
    auditContext: AuditContext,
    owner: KeyOwner,
    request: KeyRequest,
    put: (stores: Stores, plan: Plan) => Promise<Issued>,
  ): Promise<Issued> {
    const { value: policy } = await policies.inForce();
    refuseIssuance(policy, owner.type);
    const now = clock.now();
    const scopes = decideScopes(policy, owner.type, request.scopes);
    const expiresAt = decideExpiry(policy, owner.type, request, now);
    const trust = (request.trust ?? []).map((asked) => ({
      id: newId(random, 'rul'),
      ...toTrustRule(policy.federation.issuers, asked),
    }));
    return await tx(async (stores) => {
      const repositoryIds = await resolveRepositories(stores, policy, owner.type, request.repositoryAccess);
      if (owner.type === 'personal') await holdSlot(stores.keys, owner.userId, policy, now);
      const { name } = request;
      const createdBy = auditContext.actor.id;
      const issued = await put(stores, { name, scopes, repositoryIds, expiresAt, now, createdBy, trust });
      await stores.audit.append({
        event: 'api_key.created',
        auditContext,
        target: { kind: 'api_key', id: issued.key.id },
        outcome: 'success',
        details: {
          after: facts(issued.key),
          ...(trust.length === 0 ? {} : { trust }),
          ...(await sealingOf(request)),
        },
        keyIds: [issued.key.id],
      });
      return issued;
    });
  }

  return {
    create: (auditContext, owner, request) =>
      create(auditContext, owner, request, (stores, plan) =>
        issue(stores, owner, plan, null, request.sealTo),
      ),

    async createFederated(auditContext, request) {
      const owner = { type: 'service' } as const;
      const { key } = await create(auditContext, owner, request, async (stores, plan) => {
        const { id } = format.generate('service', random);
        return { key: await insert(stores, owner, plan, { id, digest: null, replaces: null }) };
      });
      return key;
    },

    list: (filter, order, page, limit) => read.keys.list(filter, order, page, limit, clock.now()),
    async which(reach, ids) {
      const found = await read.keys.withIds(ids);
      return found.filter((key) => isWithin(reach, key));
    },
    get: async (reach, id) => within(reach, await read.keys.get(id)),
    countActive: (userId) => read.keys.countActive(userId, clock.now()),

    async narrow(auditContext, reach, id, request) {
      const { value: policy } = await policies.inForce();
      const after = await tx(async (stores) => {
        const now = clock.now();
        const before = within(reach, await stores.keys.getForUpdate(id));
        requireActive(before, now);
        const expiresAt = narrowExpiry(policy, before, request, now);
        const scopes = request.scopes === undefined ? undefined : narrowScopes(before, request.scopes);
        const asked = await askedRepositories(stores, request);
        const repositoryIds = asked && narrowRepositories(before, asked);
        await stores.keys.change(id, {
          ...(request.name === undefined ? {} : { name: request.name }),
          ...(scopes === undefined ? {} : { scopes }),
          ...(expiresAt === undefined ? {} : { expiresAt }),
          // The successor of a key without expiry that gets one must expire too, so store the new duration. A key that
          // had an expiry passes its original duration on (contract 4).
          ...(expiresAt === undefined || before.lifetimeMs !== null ? {} : { lifetimeMs: expiresAt - now }),
        });
        if (repositoryIds !== undefined) await stores.keys.setRepositories(id, repositoryIds);
        const isErased = request.credential === 'federated' && before.credential === 'value';
        if (isErased) await stores.keys.eraseValue(id);
        const changed = await mustGet(stores.keys, id);
        const event = {
          auditContext,
          target: { kind: 'api_key', id },
          outcome: 'success',
          keyIds: [id],
        } as const;
        if (isNarrowing(request))
          await stores.audit.append({
            ...event,
            event: 'api_key.narrowed',
            details: { before: facts(before), after: facts(changed) },
          });
        if (isErased) await stores.audit.append({ ...event, event: 'api_key.value_erased', details: {} });
        await stores.changes.publish({ topic: 'key', subject: id });
        return changed;
      });
      await spread(after);
      return after;
    },

    async rotate(auditContext, reach, id, request) {
      const { value: policy } = await policies.inForce();
      const { predecessor: old, ...issued } = await tx(async (stores) => {
        const now = clock.now();
        const found = within(reach, await stores.keys.get(id));
        if (found.ownerUserId !== null) await stores.keys.lockOwner(found.ownerUserId);
        const predecessor = within(reach, await stores.keys.getForUpdate(id));
        requireActive(predecessor, now);
        if (predecessor.credential === 'federated')
          throw new AppError('state_conflict', {
            message: 'The key is federated: it has no value that a rotation could replace.',
            hint: 'Change its trust rules, or create another key.',
          });
        refuseIssuance(policy, predecessor.type);
        await requireUnpaired(stores.keys, predecessor, now);
        const scopes = successorScopes(policy, predecessor, request.scopes);
        const asked = await askedRepositories(stores, request);
        const plan = {
          name: request.name ?? predecessor.name,
          scopes,
          repositoryIds: successorRepositories(policy, predecessor, asked),
          expiresAt: successorExpiry(policy, predecessor, request, now),
          now,
          createdBy: auditContext.actor.id,
          // A successor inherits no rule: the pipeline of its predecessor has no part in the new value.
          trust: [],
        };
        const owner: KeyOwner =
          predecessor.ownerUserId === null
            ? { type: 'service' }
            : { type: 'personal', userId: predecessor.ownerUserId };
        const issued = await issue(stores, owner, plan, id, request.sealTo);
        const deadline = now + Math.round(request.deadlineHours * hour);
        const endsAt = Math.min(deadline, predecessor.expiresAt ?? deadline);
        await stores.keys.linkSuccessor(id, issued.key.id, endsAt, request.graceSeconds);
        await stores.audit.append({
          event: 'api_key.rotated',
          auditContext,
          target: { kind: 'api_key', id },
          outcome: 'success',
          details: {
            successor: facts(issued.key),
            successorId: issued.key.id,
            predecessorEndsAt: new Date(endsAt).toISOString(),
            graceSeconds: request.graceSeconds,
            ...(await sealingOf(request)),
          },
          keyIds: [id, issued.key.id],
        });
        await stores.changes.publish({ topic: 'key', subject: id });
        return { ...issued, predecessor, predecessorEndsAt: endsAt };
      });
      await spread(old);
      return issued;
    },

    async revoke(auditContext, reach, id, reason, note) {
      const { key, revokedAt, isNew } = await tx(async (stores) => {
        const found = within(reach, await stores.keys.getForUpdate(id));
        if (found.revokedAt !== null) return { key: found, revokedAt: found.revokedAt, isNew: false };
        return {
          key: found,
          revokedAt: await revokeIn(stores, auditContext, found, reason, note),
          isNew: true,
        };
      });
      if (isNew) await spread(key);
      return { id: key.id, revokedAt };
    },

    async revokeAll(auditContext, userId) {
      const revoked = await tx(async (stores) => {
        // Under the lock, creating or rotating a key happens before this or after it, never between.
        await stores.keys.lockOwner(userId);
        const done: { key: Key; revokedAt: number }[] = [];
        for (const { id } of await stores.keys.activeOfOwner(userId, clock.now())) {
          const key = await stores.keys.getForUpdate(id);
          if (key === undefined || statusOf(key, clock.now()) !== 'active') continue;
          done.push({ key, revokedAt: await revokeIn(stores, auditContext, key, 'owner_request') });
        }
        return done;
      });
      for (const { key } of revoked) await spread(key);
      return revoked.map(({ key, revokedAt }) => ({ id: key.id, revokedAt }));
    },

    async revokeSelf(value, origin) {
      const parsed = format.parse(value);
      if (parsed.kind === 'malformed') return;
      const digest = digestOf(value);
      if (parsed.kind === 'exchanged')
        return void (await selfRevocations(addressBucket(origin.address), () =>
          endExchanged(digest, 'revoked', origin),
        ));
      // Most values are not keys of this installation; finding that out must not cost a transaction.
      const look = () => read.keys.findByDigest(digest);
      const presented = await selfRevocations(addressBucket(origin.address), look);
      if (presented === undefined) return;
      const owner = presented.ownerUserId === null ? undefined : await findUser(presented.ownerUserId);
      const revoked = await tx(async (stores) => {
        const found = await stores.keys.findByDigest(digest);
        const key = found && (await stores.keys.getForUpdate(found.id));
        if (!key || key.revokedAt !== null) return undefined;
        const actor: Actor =
          key.type === 'service'
            ? { kind: 'service_key', id: key.id, name: key.name, credential: key.id }
            : { kind: 'user', id: key.ownerUserId, name: owner?.name ?? null, credential: key.id };
        await revokeIn(stores, { actor, origin }, key, 'self');
        return key;
      });
      if (revoked) await spread(revoked);
    },

    async recordFirstUse(id, at) {
      const predecessor = await tx(async (stores) => {
        if (!(await stores.keys.recordFirstUse(id, at))) return undefined;
        const successor = await mustGet(stores.keys, id);
        const old =
          successor.replaces === null ? undefined : await stores.keys.getForUpdate(successor.replaces);
        if (!old || statusOf(old, at) !== 'active') return undefined;
        const endsAt = Math.min(
          at + (old.graceSeconds ?? 0) * second,
          old.expiresAt ?? Number.POSITIVE_INFINITY,
        );
        await stores.keys.change(old.id, { expiresAt: endsAt });
        await stores.audit.append({
          event: 'api_key.rotated',
          auditContext: {
            actor: { kind: 'system', id: null, name: 'postern', credential: id },
            origin: { requestId: null, address: null, agent: null },
          },
          target: { kind: 'api_key', id: old.id },
          outcome: 'success',
          reason: 'successor_used',
          details: { successorId: id, predecessorEndsAt: new Date(endsAt).toISOString() },
          keyIds: [old.id, id],
        });
        await stores.changes.publish({ topic: 'key', subject: old.id });
        return old;
      });
      // The cached successor still says "never used", so make this process read it again.
      feed.announce({ topic: 'key', subject: id });
      if (predecessor) await spread(predecessor);
    },
  };

  async function revokeIn(
    stores: Stores,
    auditContext: AuditContext,
    key: Key,
    reason: RevokeReason,
    note?: string,
  ): Promise<number> {
    const now = clock.now();
    await stores.keys.revoke(key.id, now, auditContext.actor.id, reason);
    await stores.audit.append({
      event: 'api_key.revoked',
      auditContext,
      target: { kind: 'api_key', id: key.id },
      outcome: 'success',
      reason,
      details: {
        before: { status: statusOf(key, now) },
        after: { status: 'revoked' },
        ...(note === undefined ? {} : { note }),
      },
      keyIds: [key.id],
    });
    await stores.changes.publish({ topic: 'key', subject: key.id });
    return now;
  }
}

type Plan = {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly repositoryIds: readonly string[] | 'all';
  readonly expiresAt: number | null;
  readonly now: number;
  readonly createdBy: string | null;
  readonly trust: readonly TrustRule[];
};

async function mustGet(keys: KeyStore, id: string): Promise<Key> {
  const key = await keys.get(id);
  if (key === undefined) throw new Error('A key vanished inside its own transaction.');
  return key;
}

function refuseIssuance(policy: KeyPolicy, type: KeyType): void {
  if (!policy.issuance[type]) throw new AppError('issuance_disabled');
}

/** Locks the owner, so that of 50 parallel creates at 9 of 10 keys exactly one succeeds (contract 4). */
async function holdSlot(keys: KeyStore, userId: string, policy: KeyPolicy, now: number): Promise<void> {
  await keys.lockOwner(userId);
  const active = await keys.countActive(userId, now);
  const limit = policy.maxActivePersonalKeysPerUser;
  if (active >= limit)
    throw new AppError('personal_token_limit', {
      message: `You have ${active} active keys; the policy allows ${limit}.`,
      details: { active, limit },
    });
}

/** Whether a change has a field besides `credential`, which has a separate event. */
function isNarrowing(request: NarrowRequest): boolean {
  return Object.entries(request).some(([field, value]) => field !== 'credential' && value !== undefined);
}

/** A key cannot rotate while the other key of its pair is still active. */
async function requireUnpaired(keys: KeyStore, key: Key, now: number): Promise<void> {
  for (const id of [key.replaces, key.replacedBy]) {
    const other = id === null ? undefined : await keys.get(id);
    if (other && statusOf(other, now) === 'active') {
      throw new AppError('state_conflict', {
        message: 'The key is already part of a rotation.',
        hint: 'Wait until the predecessor has ended, or revoke one of the two keys.',
        details: { otherKeyId: other.id },
      });
    }
  }
}

async function resolveRepositories(
  stores: Pick<Stores, 'repositories'>,
  policy: KeyPolicy,
  type: KeyType,
  access: RepositorySelection,
): Promise<readonly string[] | 'all'> {
  if (access.mode === 'all') {
    checkRepositories(policy, type, { mode: 'all' });
    return 'all';
  }
  const names = namesIn(access.repositories);
  if (names.length > 50) {
    throw new AppError('invalid_repository_access', {
      message: `The request selects ${names.length} repositories; at most 50 are allowed.`,
    });
  }
  checkRepositories(policy, type, { mode: 'selected', count: names.length });
  return await findRepositories(stores, names);
}

/** IDs of the repositories that a change names; undefined = the change leaves them as they are. */
async function askedRepositories(
  stores: Pick<Stores, 'repositories'>,
  { repositoryAccess: access }: Pick<NarrowRequest, 'repositoryAccess'>,
): Promise<readonly string[] | 'all' | undefined> {
  if (access === undefined || access.mode === 'all') return access?.mode;
  return await findRepositories(stores, namesIn(access.repositories));
}

function namesIn(repositories: readonly string[]): string[] {
  return [...new Set(repositories.map((name) => name.toLowerCase()))];
}

async function findRepositories(
  stores: Pick<Stores, 'repositories'>,
  names: readonly string[],
): Promise<string[]> {
  const found = await stores.repositories.findAll(names);
  const known = new Set(found.map((repository) => repository.fullName.toLowerCase()));
  const missing = names.filter((name) => !known.has(name.toLowerCase()));
  if (missing.length > 0) {
    throw new AppError('repo_not_found', {
      message: `The repository ${missing[0]} is not registered.`,
      details: { missing },
    });
  }
  return found.map((repository) => repository.id);
}

/** What an audit event records about a key: never the credential. */
function facts(key: Key) {
  return {
    name: key.name,
    type: key.type,
    credential: key.credential,
    scopes: key.scopes,
    repositories:
      key.repositories.mode === 'all'
        ? { mode: 'all' }
        : { mode: 'selected', repositories: key.repositoryNames },
    expiresAt: timestampOrNull(key.expiresAt),
    owner: key.ownerUserId,
  };
}

/** What an audit event records about the value: that it was sealed, and to which public key. */
async function sealingOf({ sealTo }: Pick<KeyRequest, 'sealTo'>) {
  if (sealTo === undefined) return {};
  return { sealedTo: { kind: sealTo.kind, publicKey: await publicKeyOf(sealTo) } };
}

/** The user behind a browser session; routes that declare `session` get no other caller. */
export function sessionUser(caller: Caller): UserRef {
  if (caller.kind !== 'session') throw new AppError('interactive_auth_required');
  return caller.user;
}
