import { type Clock, hour } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { SiteOwner } from './site.ts';

/**
 * Bytes on the disk that no quota counts yet: of uploads under way, and of those that came whole and were not published,
 * which stay until the sweep. Of one owner they are never more than his quota, or a small archive that unpacks to much,
 * sent again and again, fills the disk. In this process's memory.
 */
export type UploadRoom = {
  enter(owner: SiteOwner, most: number): Holding;
};

export type Holding = {
  /** Before so many bytes are written. @throws AppError quota_exceeded */
  take(bytes: number): void;
  /** The upload came whole; so much of it stays on the disk. */
  stays(bytes: number): void;
  /** Nothing of it is left, or all of it counts as the owner's. Safe to repeat. */
  leave(): void;
};

/** As long as the sweep leaves young contents alone (cleanup.ts). */
const staysMs = hour;

export function createUploadRoom({ clock }: { clock: Clock }): UploadRoom {
  type Entry = { bytes: number; endsAt: number };
  const owners = new Map<string, Set<Entry>>();

  function forgetOld(now: number): void {
    for (const [name, entries] of owners) {
      for (const entry of entries) if (entry.endsAt <= now) entries.delete(entry);
      if (entries.size === 0) owners.delete(name);
    }
  }

  return {
    enter({ kind, id }, most) {
      forgetOld(clock.now());
      const name = `${kind}:${id}`;
      const entries = owners.get(name) ?? new Set<Entry>();
      owners.set(name, entries);
      const own: Entry = { bytes: 0, endsAt: Number.POSITIVE_INFINITY };
      entries.add(own);
      let others = 0;
      let counted = 0;

      /** Counted anew after each MiB: uploads beside this one grow too. */
      function requireRoom(): void {
        if (counted === 0 || own.bytes - counted > 1024 * 1024) {
          counted = own.bytes;
          others = 0;
          for (const entry of entries) if (entry !== own) others += entry.bytes;
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
        stays(bytes) {
          own.bytes = bytes;
          own.endsAt = clock.now() + staysMs;
        },
        leave() {
          entries.delete(own);
          if (entries.size === 0 && owners.get(name) === entries) owners.delete(name);
        },
      };
    },
  };
}
