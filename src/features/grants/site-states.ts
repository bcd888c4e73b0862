import { hour } from '../../core/clock.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { numbered } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { Site } from '../sites/sites.ts';
import { isWhole, readFields } from './records.ts';
import type { GrantSeal } from './seal.ts';

/**
 * The state of private sites in the key-value store, where a gateway reads it with each asset: one answer, no database
 * (contract 10.3). The database owns it; a record that is missing keeps private content closed until its link is
 * opened again.
 */
export type SiteState = {
  readonly siteId: string;
  readonly label: string;
  readonly isPrivate: boolean;
  /** Neither deleted nor taken down, and something is published. */
  readonly isOpen: boolean;
  readonly epoch: number;
  /** Milliseconds; null = never. */
  readonly expiresAt: number | null;
};

/** Grants last five minutes; whoever opens the link writes the record anew. */
const keptMs = hour;

export function stateKey(siteId: string): string {
  return `site:{${siteId}}:state`;
}

function stateOf(site: Site): SiteState {
  return {
    siteId: site.id,
    label: site.label,
    isPrivate: site.visibility === 'private',
    isOpen: site.deletedAt === null && site.takenDownAt === null && site.live !== null,
    epoch: site.epoch,
    expiresAt: site.expiresAt,
  };
}

/** Undefined for anything that is not exactly such a record: it counts as corrupt (threat T15). */
export function readState(seal: GrantSeal, key: string, value: string): SiteState | undefined {
  const record = numbered(value);
  const fields = record && readFields(seal, `${key} ${record.revision}`, record.text, 7);
  if (fields === undefined) return undefined;
  const [, siteId, label, isPrivate, isOpen, epoch, expiresAt] = fields;
  if (typeof siteId !== 'string' || typeof label !== 'string') return undefined;
  if (typeof isPrivate !== 'boolean' || typeof isOpen !== 'boolean' || !isWhole(epoch)) return undefined;
  if (expiresAt !== null && !isWhole(expiresAt)) return undefined;
  return { siteId, label, isPrivate, isOpen, epoch, expiresAt };
}

function writeState(seal: GrantSeal, key: string, revision: number, state: SiteState): string {
  const { siteId, label, isPrivate, isOpen, epoch, expiresAt } = state;
  // The revision is signed too: with another one an old record could pass for a newer one.
  return seal.sign(
    `${key} ${revision}`,
    JSON.stringify([1, siteId, label, isPrivate, isOpen, epoch, expiresAt]),
  );
}

export function createSiteStates({
  kv,
  seal,
  log,
}: {
  kv: Pick<Kv, 'delete' | 'setIfNewer'>;
  seal: GrantSeal;
  log: Log;
}) {
  return {
    async withdraw({ id }: Pick<Site, 'id'>): Promise<void> {
      await kv.delete(stateKey(id));
    },
    async publish(site: Site): Promise<void> {
      // Of a public site that was private once the record says so, or a late writer could bring the old one back.
      if (site.visibility === 'public' && site.epoch === 1) return;
      const key = stateKey(site.id);
      const { revision } = site;
      try {
        const text = writeState(seal, key, revision, stateOf(site));
        await kv.setIfNewer(key, { revision, text }, { ttlMs: keptMs });
      } catch (error) {
        // The change is committed. Without a record private content stays closed, and the next grant writes it.
        log.warn({ err: error, site: site.id }, 'state of a private site not written');
      }
    },
  };
}
