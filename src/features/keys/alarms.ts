import { actorOf, anonymous, type AuditContext, type RequestOrigin } from '../../core/caller.ts';
import { type Clock, timestamp } from '../../core/clock.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Denials } from '../audit/audit.ts';
import type { NoticeRecipient, NoticeWriter } from '../notices/notices.ts';
import type { ExchangedTokens } from './exchanged-tokens.ts';
import { type Key, statusOf } from './key.ts';
import type { KeyStore } from './key-store.ts';
import type { KeyFormat } from './key-value.ts';
import { createKeyWatch } from './key-watch.ts';

/**
 * Notifies owners of two things: a dead key that is still used, and a live value seen where no key may be.
 * report(), seen() and deadUse() do no I/O. flush() looks up the digest, writes the notice and counts the event in the
 * audit log. It ends an exchanged token. A value that is not a key of this installation is dropped (contract 10.12). The value
 * itself is never stored.
 */
export type KeyAlarms = {
  /** True when the text contains something shaped like a key. Cheap, because it runs on the URL of every request. */
  mentions(text: string): boolean;
  /** Queues every key value in `text`. `reason` says where it was seen; the default is a URL. */
  report(text: string, origin: RequestOrigin, reason?: ExposureReason): void;
  /** The same for a value that another component found and reports by its digest. */
  seen(digest: string, origin: RequestOrigin, reason: ExposureReason): void;
  deadUse(key: Key, status: 'revoked' | 'expired', auditContext: AuditContext): void;
  flush(): Promise<void>;
};

type ExposureReason = 'credential_in_url' | 'credential_in_content';

/** Bounds memory during a flood: more alarms between two flushes are dropped. The audit log still counts the refusals. */
const maxQueued = 1_000;

export function createKeyAlarms(deps: {
  format: KeyFormat;
  read: { keys: Pick<KeyStore, 'findByDigest'> };
  endExchanged: ExchangedTokens['end'];
  tx: Tx<{ notices: NoticeWriter }>;
  denials: Pick<Denials, 'record'>;
  clock: Clock;
}): KeyAlarms {
  const { format, read, endExchanged, tx, denials, clock } = deps;
  const exposed = new Map<string, { readonly origin: RequestOrigin; readonly reason: ExposureReason }>();
  const deadUsed = new Map<string, Key>();
  const watch = createKeyWatch(format);

  function seen(digest: string, origin: RequestOrigin, reason: ExposureReason): void {
    if (exposed.size < maxQueued) exposed.set(digest, { origin, reason });
  }

  async function tell(kind: 'key_exposed' | 'key_dead_use', key: Key, digest?: string): Promise<void> {
    await tx(({ notices }) =>
      notices.add({
        recipient: recipientOf(key),
        kind,
        keyId: key.id,
        // One notice a day for each key: enough to act on, and few enough that people still read them.
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
    deadUse(key, status, auditContext) {
      denials.record({
        event: 'api_key.dead_use',
        reason: status,
        auditContext,
        target: { kind: 'api_key', id: key.id },
      });
      if (deadUsed.size < maxQueued) deadUsed.set(key.id, key);
    },
    async flush() {
      for (const [digest, { origin, reason }] of exposed) {
        const key = await read.keys.findByDigest(digest);
        // A dead key gives no access; deadUse() notifies its owner when it is used.
        const isLive = key !== undefined && statusOf(key, clock.now()) === 'active';
        const keyId = isLive ? key.id : await endExchanged(digest, 'exposed', origin);
        if (keyId !== undefined)
          denials.record({
            event: 'api_key.exposed',
            reason,
            auditContext: { actor: actorOf(anonymous), origin },
            target: { kind: 'api_key', id: keyId },
          });
        if (isLive) await tell('key_exposed', key, digest);
        exposed.delete(digest);
      }
      for (const [id, key] of deadUsed) {
        await tell('key_dead_use', key);
        deadUsed.delete(id);
      }
    },
  };
}

/** The owner of a personal key; the administrators for service keys and unbound keys. */
export function recipientOf(key: Pick<Key, 'ownerUserId'>): NoticeRecipient {
  return key.ownerUserId === null ? { kind: 'administrators' } : { kind: 'user', userId: key.ownerUserId };
}
