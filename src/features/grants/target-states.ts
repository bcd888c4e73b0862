import { hour, minute } from '../../core/clock.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { numbered } from '../../platform/kv/kv.ts';
import type { Log } from '../../platform/log.ts';
import { isWhole, readFields } from './records.ts';
import { stateKey } from './grant-kind.ts';
import type { GrantSigner } from './grant-signer.ts';

/**
 * The state of private sites and of Environments in the key-value store. A gateway reads it with each asset, in one round
 * trip and without the database (contract 10.3). The database owns the state. While a record is missing, private content
 * stays closed until a browser opens its link again.
 */
export type TargetState = {
  readonly targetId: string;
  readonly label: string;
  /** Only a grant opens it. */
  readonly isPrivate: boolean;
  /** Neither deleted nor taken down, and there is something to open. */
  readonly isOpen: boolean;
  readonly epoch: number;
  /** Milliseconds; null = never. */
  readonly expiresAt: number | null;
};

/** A grant lasts at most an hour, and opening the link writes the record again. */
const keptMs = hour + minute;

/** Undefined for anything that is not exactly such a record; the caller treats it as corrupt (threat T15). */
export function readState(signer: GrantSigner, key: string, value: string): TargetState | undefined {
  const record = numbered(value);
  const fields = record && readFields(signer, `${key} ${record.revision}`, record.text, 7);
  if (fields === undefined) return undefined;
  const [, targetId, label, isPrivate, isOpen, epoch, expiresAt] = fields;
  if (typeof targetId !== 'string' || typeof label !== 'string') return undefined;
  if (typeof isPrivate !== 'boolean' || typeof isOpen !== 'boolean' || !isWhole(epoch)) return undefined;
  if (expiresAt !== null && !isWhole(expiresAt)) return undefined;
  return { targetId, label, isPrivate, isOpen, epoch, expiresAt };
}

function writeState(signer: GrantSigner, key: string, revision: number, state: TargetState): string {
  const { targetId, label, isPrivate, isOpen, epoch, expiresAt } = state;
  // The revision is signed too: otherwise an old record with another revision could pass for a newer one.
  return signer.sign(
    `${key} ${revision}`,
    JSON.stringify([1, targetId, label, isPrivate, isOpen, epoch, expiresAt]),
  );
}

export type TargetStates = {
  withdraw(targetId: string): Promise<void>;
  /** `revision`: a record of an earlier revision is not written. Logs a failure instead of rejecting. */
  publish(state: TargetState, revision: number): Promise<void>;
};

export function createTargetStates({
  kv,
  signer,
  log,
}: {
  kv: Pick<Kv, 'delete' | 'setIfNewer'>;
  signer: GrantSigner;
  log: Log;
}): TargetStates {
  return {
    async withdraw(targetId) {
      await kv.delete(stateKey(signer.kind, targetId));
    },
    async publish(state, revision) {
      const key = stateKey(signer.kind, state.targetId);
      try {
        const text = writeState(signer, key, revision, state);
        await kv.setIfNewer(key, { revision, text }, { ttlMs: keptMs });
      } catch (error) {
        // The change is committed. Without a record private content stays closed, and the next grant writes it.
        log.warn(
          { err: error, [signer.kind.name]: state.targetId },
          'could not write the state of private content',
        );
      }
    },
  };
}
