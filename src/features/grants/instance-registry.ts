import { minute, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { readFields } from './records.ts';
import type { GrantSigner } from './grant-signer.ts';
import type { Addresses } from './unavailable-reason.ts';

/**
 * Every process reports every few seconds the settings that all must share: SERVICE_UI_URL, SITES_CONTENT_URL,
 * ENVIRONMENTS_CONTENT_URL and SITES_ALLOW_SHARED_APEX. Browsers get access only while a gateway is registered and all
 * processes agree (contract 10.7). The key-value store cannot list its keys, so each process takes one of a fixed number
 * of slots.
 */
export type InstanceRegistry = {
  /** Renews this process's report. Rejects with `store_unavailable`, also when all slots are taken. */
  heartbeat(): Promise<void>;
  /**
   * Why no browser can get access now, for the log and the owner; null when browsers can. Renews this process's report
   * first.
   */
  unavailableReason(): Promise<string | null>;
  /** The disagreement between processes that this one found at its last check; null when there was none. */
  disagreement(): string | null;
  /** Removes this process's report, so that the others need not wait until it expires. */
  leave(): Promise<void>;
};

export type Workload = 'web' | 'gateway';

/**
 * A store that comes back empty knows no process, so browsers get access only after the next reports, within 5 seconds
 * (matrix FT-05).
 */
export const heartbeatMs = 3 * second;
/** Many heartbeats may be lost: a store that is unreachable for a minute does not mean that a process has ended. */
const keptMs = 1.5 * minute;
/**
 * Maximum number of processes of one installation, each web, gateway or worker. The chart allows 48 pods. The remaining
 * slots are for pods that come and go during an update, and for processes that ended without removing their report
 * (chart/templates/_checks.tpl).
 */
const places = 64;

export function createInstanceRegistry(deps: {
  kv: Pick<Kv, 'getAll' | 'set' | 'setIfAbsent' | 'get' | 'delete'>;
  signer: GrantSigner;
  /** Identifies this process. */
  holder: string;
  workloads: readonly Workload[];
  addresses: Addresses;
}): InstanceRegistry {
  const { kv, signer, holder, workloads, addresses } = deps;
  const { uiUrl, contentUrl, environmentsContentUrl, allowSharedApex } = addresses;
  const believed = JSON.stringify([uiUrl, contentUrl, environmentsContentUrl, allowSharedApex]);
  const keys = Array.from({ length: places }, (_, place) => `fleet:${place}`);
  let mine: string | undefined;
  let disagreement: string | null = null;

  const word = (key: string) => signer.sign(key, JSON.stringify([1, holder, workloads.join(), believed]));

  function read(key: string, value: string | null) {
    const fields = value === null ? undefined : readFields(signer, key, value, 4);
    if (fields === undefined) return undefined;
    const [, from, roles, belief] = fields;
    return { from, roles: String(roles).split(','), belief };
  }

  async function takePlace(values: readonly (string | null)[]): Promise<void> {
    for (const [place, key] of keys.entries()) {
      if (values[place] !== null || !(await kv.setIfAbsent(key, word(key), { ttlMs: keptMs }))) continue;
      mine = key;
      return;
    }
    const cause = new Error(
      `More than ${places} processes serve this installation. Run at most ${places} web, gateway and worker processes together.`,
    );
    throw new AppError('store_unavailable', { cause });
  }

  async function look(): Promise<(string | null)[]> {
    return [...(await kv.getAll(keys)).values];
  }

  function judge(values: readonly (string | null)[]): string | null {
    disagreement = null;
    const words = keys.flatMap((key, place) => read(key, values[place] ?? null) ?? []);
    // A report that is signed with another secret, or is not ours, counts as a disagreement.
    const isForeign = values.filter((value) => value !== null).length > words.length;
    if (isForeign || words.some(({ belief }) => belief !== believed)) {
      disagreement =
        'The processes of this installation have different settings. SERVICE_UI_URL, SITES_CONTENT_URL, ENVIRONMENTS_CONTENT_URL, SITES_ALLOW_SHARED_APEX and GRANT_SECRET must be the same on every process.';
      return disagreement;
    }
    return words.some(({ roles }) => roles.includes('gateway')) ? null : 'No gateway is running.';
  }

  async function heartbeat(): Promise<void> {
    // The slot may have expired during a pause, and another process may hold it now.
    const place = mine;
    if (place !== undefined && read(place, await kv.get(place))?.from === holder) {
      await kv.set(place, word(place), { ttlMs: keptMs });
    } else await takePlace(await look());
  }

  async function unavailableReason(): Promise<string | null> {
    await heartbeat();
    return judge(await look());
  }

  return {
    async heartbeat() {
      await unavailableReason();
    },
    unavailableReason,
    disagreement: () => disagreement,
    async leave() {
      if (mine !== undefined) await kv.delete(mine);
      mine = undefined;
    },
  };
}
