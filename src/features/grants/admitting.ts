import { second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { within } from '../../platform/kv/deadline.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import { secretDigest } from '../../platform/sealed-text.ts';
import { type GrantRecord, readCode, readGrant, writeGrant } from './records.ts';
import { safePath } from './return-path.ts';
import { codeKeyOf, type GrantSeal } from './seal.ts';
import { readState, stateKey } from './site-states.ts';
import { readSwitch, switchKey } from './sites-switch.ts';

/**
 * Steps 5 to 8 of private-access.md 2.2, at the gateway: a code becomes a grant, and a grant opens one host until its
 * end. One round trip to the key-value store a request; no database, no identity service. What cannot be read as it
 * should be lets nobody in.
 */
export type KnownSite = {
  readonly id: string;
  /** The newest this process heard of from the database (contract 10.3). */
  readonly epoch: number;
  readonly expiresAt: number | null;
};

export type Refusal = {
  /** A word of ours, for the audit trail. */
  readonly reason: string;
  readonly siteId: string | null;
};

export type GrantCheck =
  | { readonly kind: 'granted'; readonly siteId: string; readonly until: number; readonly now: number }
  | { readonly kind: 'none'; readonly now: number };

export type Redemption =
  | {
      readonly kind: 'granted';
      readonly cookie: string;
      readonly maxAgeSeconds: number;
      /** Where to go, on this host. */
      readonly path: string;
      /** Milliseconds, by the store's clock. */
      readonly now: number;
    }
  | { readonly kind: 'refused' };

export type GatewayGrants = {
  /** @throws AppError store_unavailable within 150 ms */
  check(at: {
    host: string;
    site: KnownSite | undefined;
    /** The grant's cookie; undefined when there is none, or two. */
    cookie: string | undefined;
    from: Origin;
  }): Promise<GrantCheck>;
  /** @throws AppError store_unavailable */
  redeem(at: {
    origin: string;
    host: string;
    code: string;
    /** The value that binds the browser. */
    binding: string;
    from: Origin;
  }): Promise<Redemption>;
  /** A post that is no redemption at all, for the trail. */
  refuse(reason: string, from: Origin): void;
  /** What the return path is sealed into (step 2). */
  ticketFor(path: string, host: string, now: number): string;
};

/** Whom a refusal is told about. */
export type Origin = { readonly address: string | null; readonly agent: string | null };

/** Private content answers or says that it cannot within this time (threat T16). */
const answerMs = 150;
/** A record of the future by more than clocks may differ was not written by our own (threat T14). */
const mostSkewMs = 2 * second;
const codeShape = /^[A-Za-z0-9_-]{43}$/;

export function createGatewayGrants(deps: {
  kv: Pick<Kv, 'getAll' | 'take' | 'set' | 'delete'>;
  seal: GrantSeal;
  refused: (refusal: Refusal, from: Origin) => void;
  /** A record that was changed, cut short or written by something else. */
  onCorrupt: () => void;
}): GatewayGrants {
  const { kv, seal } = deps;

  /** The text of each key and the store's clock, or `store_unavailable`. */
  const ask = (keys: readonly string[]) => within(answerMs, kv.getAll(keys), () => slow);

  function corrupt(what: 'grant' | 'state' | 'switch', siteId: string | null, from: Origin): undefined {
    deps.onCorrupt();
    deps.refused({ reason: `corrupt_${what}`, siteId }, from);
    return undefined;
  }

  /** Whether the site and Sites as a whole are as they were when the grant was made. */
  function isCurrent(
    { siteId, epoch, generation }: Pick<GrantRecord, 'siteId' | 'epoch' | 'generation'>,
    [stateText, switchText]: readonly (string | null | undefined)[],
    now: number,
    from: Origin,
  ): { readonly expiresAt: number | null } | undefined {
    if (typeof stateText !== 'string' || typeof switchText !== 'string') return undefined;
    const sites = readSwitch(seal, switchText) ?? corrupt('switch', siteId, from);
    const state = readState(seal, stateKey(siteId), stateText) ?? corrupt('state', siteId, from);
    if (sites === undefined || state === undefined) return undefined;
    if (!sites.isOn || sites.generation !== generation) return undefined;
    if (state.siteId !== siteId || !state.isPrivate || !state.isOpen || state.epoch !== epoch)
      return undefined;
    return state.expiresAt !== null && state.expiresAt <= now ? undefined : { expiresAt: state.expiresAt };
  }

  return {
    async check({ host, site, cookie, from }) {
      const key = cookie === undefined ? undefined : seal.grantKeyOf(cookie);
      // The same questions whether or not there is a grant or a site: nothing to tell apart by time (threat T31).
      const { values, now } = await ask([key ?? 'grant:none', stateKey(site?.id ?? ''), switchKey]);
      const none = { kind: 'none', now } as const;
      const [text, ...states] = values;
      if (key === undefined || typeof text !== 'string') return none;
      const grant = readGrant(seal, key, text) ?? corrupt('grant', site?.id ?? null, from);
      if (grant === undefined) {
        // Told once; from now on it is missing.
        await kv.delete(key);
        return none;
      }
      if (grant.host !== host || (site !== undefined && grant.siteId !== site.id)) {
        deps.refused({ reason: 'grant_of_another_host', siteId: grant.siteId }, from);
        return none;
      }
      if (grant.issuedAt > now + mostSkewMs) {
        // The store's clock was set back, by a failover perhaps: by that clock the grant would last longer than it may.
        deps.onCorrupt();
        deps.refused({ reason: 'clock_skew', siteId: grant.siteId }, from);
        await kv.delete(key);
        return none;
      }
      if (site === undefined || grant.epoch < site.epoch || grant.endsAt <= now) return none;
      const current = isCurrent(grant, states, now, from);
      if (current === undefined) return none;
      const ends = [grant.endsAt, current.expiresAt, site.expiresAt].filter((end) => end !== null);
      const until = Math.min(...ends);
      return until > now ? { kind: 'granted', siteId: grant.siteId, until, now } : none;
    },

    async redeem({ origin, host, code, binding, from }) {
      const refuse = (reason: string, siteId: string | null): Redemption => {
        deps.refused({ reason, siteId }, from);
        return { kind: 'refused' };
      };
      if (!codeShape.test(code)) return refuse('code_malformed', null);
      const key = codeKeyOf(code);
      // Read and deleted in one step: whatever follows, this code opens nothing more (threat T03).
      const text = await kv.take(key);
      if (text === null) return refuse('code_unknown', null);
      const record = readCode(seal, key, text);
      if (record === undefined) {
        deps.onCorrupt();
        return refuse('corrupt_code', null);
      }
      const { siteId } = record;
      if (record.host !== host) return refuse('code_of_another_host', siteId);
      if (record.binding !== secretDigest(binding)) return refuse('code_of_another_browser', siteId);
      const { values, now } = await ask([stateKey(siteId), switchKey]);
      if (record.endsAt <= now || record.issuedAt > now + mostSkewMs) return refuse('code_expired', siteId);
      if (isCurrent(record, values, now, from) === undefined) return refuse('site_changed', siteId);
      const { binding: _binding, ticket, ...grant } = record;
      const minted = seal.mintGrant();
      const ttlMs = record.endsAt - now;
      await kv.set(minted.key, writeGrant(seal, minted.key, grant), { ttlMs });
      return {
        kind: 'granted',
        cookie: minted.cookie,
        maxAgeSeconds: Math.max(1, Math.floor(ttlMs / second)),
        path: safePath(seal.openPath(ticket, host, now), origin),
        now,
      };
    },

    refuse: (reason, from) => deps.refused({ reason, siteId: null }, from),
    ticketFor: (path, host, now) => seal.sealPath(path, host, now),
  };
}

const slow = new AppError('store_unavailable');
