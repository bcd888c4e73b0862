import type { Act } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { ChangeFeed, ChangeStore } from '../../platform/database/changes.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import {
  type DocumentStore,
  type DocumentVersion,
  documentEtag,
  requireMatch,
} from '../settings/settings.ts';
import { defaultKeyPolicy, type KeyPolicy, refusalsUnder } from './key-policy.ts';
import type { KeyStore } from './key-store.ts';
import { keyPolicySchema } from './policy-schema.ts';

/**
 * The typed policy in force, and its change: with If-Match, dry run, history and revert (contract 2 and 4).
 * Every process answers from memory while it has read the change feed within the last second (contract 10.2).
 */
const documentName = 'api-keys';

export type PolicyVersion = {
  readonly version: number;
  readonly etag: string;
  readonly policy: KeyPolicy;
  readonly changedAt: number | null;
  readonly changedBy: string | null;
};

/** Existing keys that could not be created under the policy, at most `listed` of them by name. */
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

const mostListed = 100;

export type KeyPolicies = {
  /** The policy in force; a promise only when this process must read it first. */
  inForce(): PolicyVersion | Promise<PolicyVersion>;
  /** What this process read last, however long ago: for refusals that must cost no I/O (KF-02). */
  lastRead(): KeyPolicy;
  read(): Promise<PolicyVersion>;
  put(act: Act, ifMatch: string | undefined, next: KeyPolicy): Promise<PolicyVersion>;
  /** What `next` would refuse; changes nothing. */
  dryRun(ifMatch: string | undefined, next: KeyPolicy): Promise<{ current: PolicyVersion; impact: DryRun }>;
  history(page: number, limit: number): Promise<{ items: PolicyVersion[]; total: number }>;
  revert(act: Act, ifMatch: string | undefined, version: number): Promise<PolicyVersion>;
};

type Stores = { documents: DocumentStore; audit: AuditWriter; changes: ChangeStore };

export function createKeyPolicies(deps: {
  read: { documents: DocumentStore; keys: KeyStore };
  tx: Tx<Stores>;
  feed: Pick<ChangeFeed, 'announce' | 'subscribe'>;
  /** False = this process may have missed a change, so ask the database. */
  isFresh: () => boolean;
  clock: Clock;
}): KeyPolicies {
  const { read, tx, feed, isFresh, clock } = deps;
  let cached: PolicyVersion | undefined;
  let last: KeyPolicy = defaultKeyPolicy;
  // Counts changes heard of, so that a document read before a change is not kept after it.
  let heard = 0;
  feed.subscribe(({ topic }) => {
    if (topic !== 'policy') return;
    heard += 1;
    cached = undefined;
    // At once, for those who only ask lastRead(); whoever asks inForce() reads for himself when this fails.
    void load().catch(() => undefined);
  });

  async function load(): Promise<PolicyVersion> {
    const heardBefore = heard;
    const loaded = toPolicy(await read.documents.current(documentName));
    if (heard === heardBefore) {
      cached = loaded;
      last = loaded.policy;
    }
    return loaded;
  }

  async function change(
    act: Act,
    ifMatch: string | undefined,
    pick: (stores: Stores) => Promise<KeyPolicy>,
    reason: string,
  ) {
    const next = await tx(async (stores) => {
      const before = toPolicy(await stores.documents.current(documentName));
      requireMatch(ifMatch, before.etag);
      const policy = await pick(stores);
      const document = {
        version: before.version + 1,
        value: policy,
        changedAt: clock.now(),
        changedBy: act.actor.id,
      };
      await stores.documents.add(documentName, document);
      await stores.audit.append({
        event: 'policy.changed',
        act,
        target: { kind: 'policy', id: documentName },
        outcome: 'success',
        reason,
        details: { version: document.version, before: before.policy, after: policy },
      });
      await stores.changes.publish({ topic: 'policy', subject: documentName });
      return toPolicy(document);
    });
    feed.announce({ topic: 'policy', subject: documentName });
    return next;
  }

  async function impactOf(next: KeyPolicy): Promise<DryRun> {
    const now = clock.now();
    const refused: DryRun['refused'][number][] = [];
    const owners = new Set<string>();
    let keys = 0;
    let after: string | null = null;
    for (;;) {
      const page = await read.keys.activeAfter(after, 500, now);
      for (const key of page) {
        const reasons = refusalsUnder(next, {
          type: key.type,
          scopes: key.scopes,
          repositoryMode: key.repositories.mode,
          repositoryCount: key.repositories.mode === 'all' ? 0 : key.repositories.repositoryIds.length,
          lifetimeMs: key.lifetimeMs,
          expiresAt: key.expiresAt,
        });
        if (reasons.length === 0) continue;
        keys += 1;
        owners.add(key.ownerUserId ?? key.id);
        if (refused.length < mostListed) {
          refused.push({ keyId: key.id, name: key.name, ownerUserId: key.ownerUserId, reasons });
        }
      }
      const last = page.at(-1);
      if (last === undefined) return { keys, owners: owners.size, refused };
      after = last.id;
    }
  }

  return {
    lastRead: () => last,
    inForce: () => (cached !== undefined && isFresh() ? cached : load()),
    read: load,
    put: (act, ifMatch, next) => change(act, ifMatch, async () => next, 'changed'),
    async dryRun(ifMatch, next) {
      const current = await load();
      requireMatch(ifMatch, current.etag);
      return { current, impact: await impactOf(next) };
    },
    async history(page, limit) {
      const { items, total } = await read.documents.history(documentName, page, limit);
      return { items: items.map(toPolicy), total };
    },
    revert: (act, ifMatch, version) =>
      change(
        act,
        ifMatch,
        async (stores) => {
          if (version === 0) return defaultKeyPolicy;
          const earlier = await stores.documents.at(documentName, version);
          if (!earlier)
            throw new AppError('not_found', { message: `There is no version ${version} of this document.` });
          return keyPolicySchema.parse(earlier.value);
        },
        'reverted',
      ),
  };
}

function toPolicy(document: DocumentVersion | undefined): PolicyVersion {
  const version = document?.version ?? 0;
  const policy = document === undefined ? defaultKeyPolicy : keyPolicySchema.parse(document.value);
  return {
    version,
    etag: documentEtag(documentName, version, policy),
    policy,
    changedAt: document?.changedAt ?? null,
    changedBy: document?.changedBy ?? null,
  };
}
