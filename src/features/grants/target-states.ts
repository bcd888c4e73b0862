import { hour } from '../../core/clock.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { numbered } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import type { Site } from '../sites/sites.ts';
import { isWhole, readFields } from './records.ts';
import type { GrantSigner } from './grant-signer.ts';

/**
 * The state of private sites in the key-value store. A gateway reads it with each asset, in one round trip and without
 * the database (contract 10.3). The database owns the state. While a record is missing, private content stays closed
 * until a browser opens the site's link again.
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

/** Grants last five minutes, and opening the link writes the record again. */
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

/** Undefined for anything that is not exactly such a record; the caller treats it as corrupt (threat T15). */
export function readState(signer: GrantSigner, key: string, value: string): SiteState | undefined {
  const record = numbered(value);
  const fields = record && readFields(signer, `${key} ${record.revision}`, record.text, 7);
  if (fields === undefined) return undefined;
  const [, siteId, label, isPrivate, isOpen, epoch, expiresAt] = fields;
  if (typeof siteId !== 'string' || typeof label !== 'string') return undefined;
  if (typeof isPrivate !== 'boolean' || typeof isOpen !== 'boolean' || !isWhole(epoch)) return undefined;
  if (expiresAt !== null && !isWhole(expiresAt)) return undefined;
  return { siteId, label, isPrivate, isOpen, epoch, expiresAt };
}

function writeState(signer: GrantSigner, key: string, revision: number, state: SiteState): string {
  const { siteId, label, isPrivate, isOpen, epoch, expiresAt } = state;
  // The revision is signed too: otherwise an old record with another revision could pass for a newer one.
  return signer.sign(
    `${key} ${revision}`,
    JSON.stringify([1, siteId, label, isPrivate, isOpen, epoch, expiresAt]),
  );
}

export function createSiteStates({
  kv,
  signer,
  log,
}: {
  kv: Pick<Kv, 'delete' | 'setIfNewer'>;
  signer: GrantSigner;
  log: Log;
}) {
  return {
    async withdraw({ id }: Pick<Site, 'id'>): Promise<void> {
      await kv.delete(stateKey(id));
    },
    async publish(site: Site): Promise<void> {
      // A site that was private before gets a record when it is public too; otherwise a late writer could restore the
      // old one.
      if (site.visibility === 'public' && site.epoch === 1) return;
      const key = stateKey(site.id);
      const { revision } = site;
      try {
        const text = writeState(signer, key, revision, stateOf(site));
        await kv.setIfNewer(key, { revision, text }, { ttlMs: keptMs });
      } catch (error) {
        // The change is committed. Without a record private content stays closed, and the next grant writes it.
        log.warn({ err: error, site: site.id }, 'could not write the state of a private site');
      }
    },
  };
}
