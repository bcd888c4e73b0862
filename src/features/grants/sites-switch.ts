import { hour } from '../../core/clock.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { numbered } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import { isWhole, readFields } from './records.ts';
import type { GrantSeal } from './seal.ts';

/**
 * Whether Sites is on, in the key-value store, where a gateway reads it with each private asset. The generation counts
 * how often it was switched off, so that grants of before stay dead (contract 6). Missing = nobody is let in.
 */
export type SitesSwitch = { readonly generation: number; readonly isOn: boolean };

export const switchKey = 'sites:switch';
const keptMs = hour;

export function readSwitch(seal: GrantSeal, value: string): SitesSwitch | undefined {
  const record = numbered(value);
  const fields = record && readFields(seal, `${switchKey} ${record.revision}`, record.text, 3);
  if (fields === undefined) return undefined;
  const [, generation, isOn] = fields;
  return isWhole(generation) && typeof isOn === 'boolean' ? { generation, isOn } : undefined;
}

export type SwitchRecords = {
  /** Before a change of the configuration: private content stops. Rejects with `store_unavailable`. */
  withdraw(): Promise<void>;
  /** What the database says now, written for the gateways. Rejects when either cannot be reached. */
  publish(): Promise<SitesSwitch>;
  /** The same after a change and from time to time; a failure is told to the log. */
  refresh(): Promise<void>;
};

export function createSwitchRecords(deps: {
  kv: Pick<Kv, 'delete' | 'setIfNewer'>;
  seal: GrantSeal;
  log: Log;
  readConfig: () => Promise<{ readonly version: number; readonly value: { readonly enabled: boolean } }>;
  readGeneration: () => Promise<number>;
}): SwitchRecords {
  const { kv, seal, log } = deps;

  async function publish(): Promise<SitesSwitch> {
    // In this order: a change between the two reads gives a number too high for the document, which lets nobody in,
    // never one too low, which would revive grants.
    const { version, value } = await deps.readConfig();
    const generation = await deps.readGeneration();
    const text = seal.sign(`${switchKey} ${version}`, JSON.stringify([1, generation, value.enabled]));
    await kv.setIfNewer(switchKey, { revision: version, text }, { ttlMs: keptMs });
    return { generation, isOn: value.enabled };
  }

  return {
    async withdraw() {
      await kv.delete(switchKey);
    },
    publish,
    async refresh() {
      try {
        await publish();
      } catch (error) {
        log.warn({ err: error }, 'the switch of Sites not written; private content stays closed until it is');
      }
    },
  };
}
