import { hour } from '../../core/clock.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { numbered } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import { isWhole, readFields } from './records.ts';
import type { GrantSigner } from './grant-signer.ts';

/**
 * Whether Sites, or Environments, are on. A gateway reads this record from the key-value store with each private asset. The
 * generation grows each time they are switched off, so that earlier grants stay invalid (contract 6). While the record
 * is missing, no one has access.
 */
export type SwitchState = { readonly generation: number; readonly isOn: boolean };

const keptMs = hour;

export function readSwitch(signer: GrantSigner, value: string): SwitchState | undefined {
  const record = numbered(value);
  const fields = record && readFields(signer, `${signer.kind.switchKey} ${record.revision}`, record.text, 3);
  if (fields === undefined) return undefined;
  const [, generation, isOn] = fields;
  return isWhole(generation) && typeof isOn === 'boolean' ? { generation, isOn } : undefined;
}

export type SwitchRecords = {
  /** Stops private content before a change of the configuration. Rejects with `store_unavailable`. */
  withdraw(): Promise<void>;
  /** Writes the current state of the database for the gateways. Rejects when either cannot be reached. */
  publish(): Promise<SwitchState>;
  /** Writes the state after a change and from time to time; logs a failure instead of rejecting. */
  refresh(): Promise<void>;
};

export function createSwitchRecords(deps: {
  kv: Pick<Kv, 'delete' | 'setIfNewer'>;
  signer: GrantSigner;
  log: Log;
  readConfig: () => Promise<{ readonly version: number; readonly value: { readonly enabled: boolean } }>;
  readGeneration: () => Promise<number>;
}): SwitchRecords {
  const { kv, signer, log } = deps;
  const { switchKey, name } = signer.kind;

  async function publish(): Promise<SwitchState> {
    // The configuration first. If the switch is turned off between the two reads, the record has the older configuration with
    // the new generation: no grant matches it, so everyone is refused until the next publish(). In the reverse order it
    // could have the new configuration with the older generation, which would revive ended grants.
    const { version, value } = await deps.readConfig();
    const generation = await deps.readGeneration();
    const text = signer.sign(`${switchKey} ${version}`, JSON.stringify([1, generation, value.enabled]));
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
        log.warn(
          { err: error, kind: name },
          'could not write the switch of private content, which does not open until it is written',
        );
      }
    },
  };
}
