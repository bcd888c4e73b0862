import { type Clock, hour } from '../../../core/clock.ts';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import type { SiteOwner } from '../site/site.ts';
import { requireUnpublishedBytes } from '../content/upload-limits.ts';

/**
 * Bytes on the disk that no quota counts yet: running uploads, and complete contents of unpublished uploads, which
 * stay until the sweep. For one owner they never exceed the quota. Otherwise a small archive that unpacks to a large size,
 * sent repeatedly, would fill the disk. Kept in this process's memory.
 */
export type UploadReservations = {
  /** Reserves space for a running upload. `most`: the limit in bytes for all unpublished content, including this upload. */
  reserve(owner: SiteOwner, most: number): Reservation;
  /** Releases these contents, because the owner's quota counts them now. */
  publish(owner: SiteOwner, digests: Iterable<string>): void;
};

export type Reservation = {
  /** Call before writing this many bytes. @throws AppError quota_exceeded */
  take(bytes: number): void;
  /** These contents are complete and now wait to be published: each counts once, however often it is sent. */
  awaitPublish(blobs: Iterable<Blob>): void;
  /** Call when the upload was removed, or all of it waits under its digests. Safe to repeat. */
  release(): void;
};

/** The time for which the sweep skips young blobs (cleanup.ts). */
const staysMs = hour;
/** Contents of one owner that are counted once each; those beyond count each time they are sent. */
const maxToldApart = 50_000;
const mib = 1024 * 1024;

type Waiting = { readonly size: number; readonly endsAt: number };
type Owner = {
  readonly underWay: Set<{ bytes: number }>;
  /** By digest, or by a number when there are too many; the oldest first. */
  readonly waiting: Map<string, Waiting>;
  waitingBytes: number;
};

export function createUploadReservations({ clock }: { clock: Clock }): UploadReservations {
  const owners = new Map<string, Owner>();
  let nth = 0;

  function forget(owner: Owner, digest: string): void {
    const known = owner.waiting.get(digest);
    if (known === undefined) return;
    owner.waiting.delete(digest);
    owner.waitingBytes -= known.size;
  }

  function forgetOld(now: number): void {
    for (const [name, owner] of owners) {
      for (const [digest, { endsAt }] of owner.waiting) {
        if (endsAt > now) break;
        forget(owner, digest);
      }
      if (owner.underWay.size === 0 && owner.waiting.size === 0) owners.delete(name);
    }
  }

  function ownerOf({ kind, id }: SiteOwner): Owner {
    forgetOld(clock.now());
    const name = `${kind}:${id}`;
    const owner = owners.get(name) ?? { underWay: new Set(), waiting: new Map(), waitingBytes: 0 };
    owners.set(name, owner);
    return owner;
  }

  return {
    reserve(of, most) {
      const owner = ownerOf(of);
      const own = { bytes: 0 };
      owner.underWay.add(own);
      let others = 0;
      let counted = 0;

      /** Sums up again after each MiB, because concurrent uploads grow too. */
      function requireQuota(): void {
        if (counted === 0 || own.bytes - counted > mib) {
          counted = own.bytes;
          others = owner.waitingBytes;
          for (const entry of owner.underWay) if (entry !== own) others += entry.bytes;
        }
        requireUnpublishedBytes(others + own.bytes, most);
      }

      return {
        take(bytes) {
          own.bytes += bytes;
          requireQuota();
        },
        awaitPublish(blobs) {
          const endsAt = clock.now() + staysMs;
          for (const { digest, size } of blobs) {
            const isKnown = owner.waiting.has(digest);
            const name = isKnown || owner.waiting.size < maxToldApart ? digest : `${(nth += 1)}`;
            forget(owner, name);
            owner.waiting.set(name, { size, endsAt });
            owner.waitingBytes += size;
            own.bytes = Math.max(0, own.bytes - size);
          }
          counted = 0;
        },
        release: () => void owner.underWay.delete(own),
      };
    },
    publish(of, digests) {
      const owner = ownerOf(of);
      for (const digest of digests) forget(owner, digest);
    },
  };
}
