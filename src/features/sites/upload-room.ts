import { type Clock, hour } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Blob } from '../../platform/blobs/blobs.ts';
import type { SiteOwner } from './site.ts';

/**
 * Bytes on the disk that no quota counts yet: of uploads under way, and contents that came whole and were not published,
 * which stay until the sweep. Of one owner they are never more than his quota, or a small archive that unpacks to much,
 * sent again and again, fills the disk. In this process's memory.
 */
export type UploadRoom = {
  /** An archive on its way. `most`: bytes of all that waits, this one among it. */
  enter(owner: SiteOwner, most: number): Holding;
  /** They count as the owner's now. */
  publish(owner: SiteOwner, digests: Iterable<string>): void;
};

export type Holding = {
  /** Before so many bytes are written. @throws AppError quota_exceeded */
  take(bytes: number): void;
  /** These came whole, and wait by themselves: each counts once, however often it comes. */
  waits(blobs: Iterable<Blob>): void;
  /** Nothing of it is left, or all of it waits under its digests. Safe to repeat. */
  leave(): void;
};

/** As long as the sweep leaves young contents alone (cleanup.ts). */
const staysMs = hour;
/** Contents of one owner that are told apart; those beyond are counted each time they come. */
const mostToldApart = 50_000;
const mib = 1024 * 1024;

type Waiting = { readonly size: number; readonly endsAt: number };
type Owner = {
  readonly underWay: Set<{ bytes: number }>;
  /** By digest, or by a number where there are too many; the oldest first. */
  readonly waiting: Map<string, Waiting>;
  waitingBytes: number;
};

export function createUploadRoom({ clock }: { clock: Clock }): UploadRoom {
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
    enter(of, most) {
      const owner = ownerOf(of);
      const own = { bytes: 0 };
      owner.underWay.add(own);
      let others = 0;
      let counted = 0;

      /** Counted anew after each MiB: uploads beside this one grow too. */
      function requireRoom(): void {
        if (counted === 0 || own.bytes - counted > mib) {
          counted = own.bytes;
          others = owner.waitingBytes;
          for (const entry of owner.underWay) if (entry !== own) others += entry.bytes;
        }
        if (others + own.bytes <= most) return;
        throw new AppError('quota_exceeded', {
          message: `Your uploads of the last hour that were not published hold ${most} bytes, as many as are allowed.`,
          hint: 'Mend what keeps them from being published, or try again in an hour.',
          details: { quota: 'bytesPerOwner', limit: most },
        });
      }

      return {
        take(bytes) {
          own.bytes += bytes;
          requireRoom();
        },
        waits(blobs) {
          const endsAt = clock.now() + staysMs;
          for (const { digest, size } of blobs) {
            const isKnown = owner.waiting.has(digest);
            const name = isKnown || owner.waiting.size < mostToldApart ? digest : `${(nth += 1)}`;
            forget(owner, name);
            owner.waiting.set(name, { size, endsAt });
            owner.waitingBytes += size;
            own.bytes = Math.max(0, own.bytes - size);
          }
          counted = 0;
        },
        leave: () => void owner.underWay.delete(own),
      };
    },
    publish(of, digests) {
      const owner = ownerOf(of);
      for (const digest of digests) forget(owner, digest);
    },
  };
}
