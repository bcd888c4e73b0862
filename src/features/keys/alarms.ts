import type { Act, RequestOrigin } from '../../core/caller.ts';
import { actorOf } from '../../core/caller.ts';
import { type Clock, timestamp } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Denials } from '../audit/audit.ts';
import type { NoticeRecipient, NoticeWriter } from '../notices/notices.ts';
import { type Key, statusOf } from './key.ts';
import type { KeyStore } from './key-store.ts';
import type { KeyFormat } from './key-value.ts';
import { createKeyWatch } from './key-watch.ts';

/**
 * Two things an owner should hear of: a dead key that is still used, and a live value seen where no key may be.
 * Noting one never waits and does no I/O; flush() looks the value's digest up, writes the notice and lets the
 * trail count it. A value that is no key of ours is forgotten (contract 10.12); the value itself is never kept.
 */
export type KeyAlarms = {
  /** True when the text holds something shaped like a key. Cheap: it runs on every address. */
  mentions(text: string): boolean;
  /** `reason`: where it was seen; an address unless it says otherwise. */
  report(text: string, origin: RequestOrigin, reason?: ExposureReason): void;
  /** The same of a value that somebody else saw, by its digest. */
  seen(digest: string, origin: RequestOrigin, reason: ExposureReason): void;
  deadUse(key: Key, status: 'revoked' | 'expired', act: Act): void;
  flush(): Promise<void>;
};

type ExposureReason = 'credential_in_url' | 'credential_in_content';

/** More than this between two flushes is a flood; the trail still counts the refusals themselves. */
const mostQueued = 1_000;

export function createKeyAlarms(deps: {
  format: KeyFormat;
  read: { keys: Pick<KeyStore, 'findByDigest'> };
  tx: Tx<{ notices: NoticeWriter }>;
  denials: Pick<Denials, 'record'>;
  clock: Clock;
}): KeyAlarms {
  const { format, read, tx, denials, clock } = deps;
  const exposed = new Map<string, { readonly origin: RequestOrigin; readonly reason: ExposureReason }>();
  const deadUsed = new Map<string, Key>();
  const watch = createKeyWatch(format);

  function seen(digest: string, origin: RequestOrigin, reason: ExposureReason): void {
    if (exposed.size < mostQueued) exposed.set(digest, { origin, reason });
  }

  async function tell(kind: 'key_exposed' | 'key_dead_use', key: Key, digest?: string): Promise<void> {
    await tx(({ notices }) =>
      notices.add({
        recipient: recipientOf(key),
        kind,
        keyId: key.id,
        // Once a day and key: enough to act on, too little to be ignored.
        occasion: timestamp(clock.now()).slice(0, 10),
        fields: { keyName: key.name, ...(digest === undefined ? {} : { digest }) },
      }),
    );
  }

  return {
    mentions: watch.mentions,
    report(text, origin, reason = 'credential_in_url') {
      for (const digest of watch.digestsIn(text)) seen(digest, origin, reason);
    },
    seen,
    deadUse(key, status, act) {
      denials.record({
        event: 'api_key.dead_use',
        reason: status,
        act,
        target: { kind: 'api_key', id: key.id },
      });
      if (deadUsed.size < mostQueued) deadUsed.set(key.id, key);
    },
    async flush() {
      for (const [digest, { origin, reason }] of exposed) {
        const key = await read.keys.findByDigest(digest);
        // A dead one opens nothing any more; whoever uses it is told of by deadUse().
        if (key !== undefined && statusOf(key, clock.now()) === 'active') {
          denials.record({
            event: 'api_key.exposed',
            reason,
            act: { actor: actorOf({ kind: 'anonymous' }), origin },
            target: { kind: 'api_key', id: key.id },
          });
          await tell('key_exposed', key, digest);
        }
        exposed.delete(digest);
      }
      for (const [id, key] of deadUsed) {
        await tell('key_dead_use', key);
        deadUsed.delete(id);
      }
    },
  };
}

/** A personal key's owner; for service and unbound keys, whoever is an administrator. */
export function recipientOf(key: Pick<Key, 'ownerUserId'>): NoticeRecipient {
  return key.ownerUserId === null ? { kind: 'administrators' } : { kind: 'user', userId: key.ownerUserId };
}
