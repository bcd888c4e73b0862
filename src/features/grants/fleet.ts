import { minute, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { readFields } from './records.ts';
import type { GrantSeal } from './seal.ts';
import type { Addresses } from './obstacle.ts';

/**
 * Every process that opens or serves private sites says every few seconds what it believes: the two addresses and
 * whether they may share a registrable domain. Browsers are let in only while a gateway is there and all agree
 * (contract 10.7). The store lists nothing, so each process takes one of a fixed number of places.
 */
export type Fleet = {
  /** Says it again. Rejects with `store_unavailable`, also when all places are taken. */
  beat(): Promise<void>;
  /** Why nobody may be let in now, for the log and the owner; null when all is well. Says our own word first. */
  obstacle(): Promise<string | null>;
  /** Whether the processes disagreed when this one looked last. */
  disagreement(): string | null;
  /** Leaves, so that the others need not wait for our word to lapse. */
  leave(): Promise<void>;
};

export type Workload = 'web' | 'gateway';

/** A store that comes back empty knows of nobody: nobody is let in before it is told again, within 5 seconds (bars, R4). */
export const beatMs = 3 * second;
/** Many beats may be lost: a store that is away for a minute is no process that is gone. */
const keptMs = 1.5 * minute;
/**
 * Processes of one installation, each web, gateway or worker. The chart lets 48 pods be: what is left is for those that come and go
 * in an update, and for those that died without a word (chart/templates/_checks.tpl).
 */
const places = 64;

export function createFleet(deps: {
  kv: Pick<Kv, 'getAll' | 'set' | 'setIfAbsent' | 'get' | 'delete'>;
  seal: GrantSeal;
  /** Names this process. */
  holder: string;
  workloads: readonly Workload[];
  addresses: Addresses;
}): Fleet {
  const { kv, seal, holder, workloads, addresses } = deps;
  const believed = JSON.stringify([addresses.uiUrl, addresses.contentUrl, addresses.allowSharedApex]);
  const keys = Array.from({ length: places }, (_, place) => `fleet:${place}`);
  let mine: string | undefined;
  let disagreement: string | null = null;

  const word = (key: string) => seal.sign(key, JSON.stringify([1, holder, workloads.join(), believed]));

  function read(key: string, value: string | null) {
    const fields = value === null ? undefined : readFields(seal, key, value, 4);
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
      `More than ${places} processes serve this installation. Run fewer of web, gateway and worker, together.`,
    );
    throw new AppError('store_unavailable', { cause });
  }

  async function look(): Promise<(string | null)[]> {
    return [...(await kv.getAll(keys)).values];
  }

  function judge(values: readonly (string | null)[]): string | null {
    disagreement = null;
    const words = keys.flatMap((key, place) => read(key, values[place] ?? null) ?? []);
    // Signed with another secret, or not ours: whatever it means to say, it does not agree.
    const isForeign = values.filter((value) => value !== null).length > words.length;
    if (isForeign || words.some(({ belief }) => belief !== believed)) {
      disagreement =
        'The processes of this installation do not agree: SERVICE_UI_URL, SITES_CONTENT_URL, SITES_ALLOW_SHARED_APEX and GRANT_SECRET must be the same on each.';
      return disagreement;
    }
    return words.some(({ roles }) => roles.includes('gateway')) ? null : 'No gateway is running.';
  }

  async function beat(): Promise<void> {
    // A place may have lapsed during a pause and be another's now.
    const place = mine;
    if (place !== undefined && read(place, await kv.get(place))?.from === holder) {
      await kv.set(place, word(place), { ttlMs: keptMs });
    } else await takePlace(await look());
  }

  async function obstacle(): Promise<string | null> {
    await beat();
    return judge(await look());
  }

  return {
    async beat() {
      await obstacle();
    },
    obstacle,
    disagreement: () => disagreement,
    async leave() {
      if (mine !== undefined) await kv.delete(mine);
      mine = undefined;
    },
  };
}
