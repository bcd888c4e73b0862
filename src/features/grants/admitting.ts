import { second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { within } from '../../platform/kv/deadline.ts';
import type { Kv, KvValues } from '../../platform/kv/kv.ts';
import { secretDigest } from '../../platform/sealed-text.ts';
import { type GrantRecord, readCode, readGrant, writeGrant } from './records.ts';
import { remembering } from './remembering.ts';
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

/** What a browser asks for, and with what. */
export type GrantQuestion = {
  readonly host: string;
  readonly site: KnownSite | undefined;
  /** The grant's cookie; undefined when there is none, or two. */
  readonly cookie: string | undefined;
  /** Asked for only when something is refused that somebody should hear of. */
  readonly from: () => Origin;
};

export type GatewayGrants = {
  /**
   * At once when the store answers at once; else within 150 ms.
   * @throws AppError store_unavailable
   */
  check(question: GrantQuestion): GrantCheck | Promise<GrantCheck>;
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
  const grantAt = remembering((key, value) => readGrant(seal, key, value));
  const stateAt = remembering((key, value) => readState(seal, key, value));
  const switchAt = remembering((_key, value) => readSwitch(seal, value));

  /** The text of each key and the store's clock, or `store_unavailable`. */
  function ask(keys: readonly string[]): KvValues | Promise<KvValues> {
    const values = kv.getAll(keys);
    return values instanceof Promise ? within(answerMs, values, () => slow) : values;
  }

  function corrupt(what: 'grant' | 'state' | 'switch', siteId: string | null, from: () => Origin): undefined {
    deps.onCorrupt();
    deps.refused({ reason: `corrupt_${what}`, siteId }, from());
    return undefined;
  }

  /** Whether the site, whose state is kept at `key`, and Sites as a whole are as they were when the grant was made. */
  function isCurrent(
    key: string,
    { siteId, epoch, generation }: Pick<GrantRecord, 'siteId' | 'epoch' | 'generation'>,
    [stateText, switchText]: readonly (string | null | undefined)[],
    now: number,
    from: () => Origin,
  ): { readonly expiresAt: number | null } | undefined {
    if (typeof stateText !== 'string' || typeof switchText !== 'string') return undefined;
    const sites = switchAt(switchKey, switchText) ?? corrupt('switch', siteId, from);
    const state = stateAt(key, stateText) ?? corrupt('state', siteId, from);
    if (sites === undefined || state === undefined) return undefined;
    if (!sites.isOn || sites.generation !== generation) return undefined;
    if (state.siteId !== siteId || !state.isPrivate || !state.isOpen || state.epoch !== epoch)
      return undefined;
    return state.expiresAt !== null && state.expiresAt <= now ? undefined : { expiresAt: state.expiresAt };
  }

  /** What the store's answer means; `forget`: the record is to be deleted, so that it is told of once. */
  function judge(
    { host, site, from }: GrantQuestion,
    [key, stateKeyOfSite]: readonly [string | undefined, string],
    { values, now }: KvValues,
  ): GrantCheck | { readonly kind: 'forget'; readonly key: string; readonly now: number } {
    const none = { kind: 'none', now } as const;
    const [text, ...states] = values;
    if (key === undefined || typeof text !== 'string') return none;
    const grant = grantAt(key, text) ?? corrupt('grant', site?.id ?? null, from);
    if (grant === undefined) return { kind: 'forget', key, now };
    if (grant.host !== host || (site !== undefined && grant.siteId !== site.id)) {
      deps.refused({ reason: 'grant_of_another_host', siteId: grant.siteId }, from());
      return none;
    }
    if (grant.issuedAt > now + mostSkewMs) {
      // The store's clock was set back, by a failover perhaps: by that clock the grant would last longer than it may.
      deps.onCorrupt();
      deps.refused({ reason: 'clock_skew', siteId: grant.siteId }, from());
      return { kind: 'forget', key, now };
    }
    if (site === undefined || grant.epoch < site.epoch || grant.endsAt <= now) return none;
    const current = isCurrent(stateKeyOfSite, grant, states, now, from);
    if (current === undefined) return none;
    const until = Math.min(grant.endsAt, current.expiresAt ?? Infinity, site.expiresAt ?? Infinity);
    return until > now ? { kind: 'granted', siteId: grant.siteId, until, now } : none;
  }

  return {
    check(question) {
      const { cookie, site } = question;
      const key = cookie === undefined ? undefined : seal.grantKeyOf(cookie);
      const state = stateKey(site?.id ?? '');
      const settle = (values: KvValues): GrantCheck | Promise<GrantCheck> => {
        const found = judge(question, [key, state], values);
        if (found.kind !== 'forget') return found;
        return kv.delete(found.key).then(() => ({ kind: 'none', now: found.now }));
      };
      // The same questions whether or not there is a grant or a site: nothing to tell apart by time (threat T31).
      const answer = ask([key ?? 'grant:none', state, switchKey]);
      return answer instanceof Promise ? answer.then(settle) : settle(answer);
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
      const state = stateKey(siteId);
      const { values, now } = await ask([state, switchKey]);
      if (record.endsAt <= now || record.issuedAt > now + mostSkewMs) return refuse('code_expired', siteId);
      if (isCurrent(state, record, values, now, () => from) === undefined)
        return refuse('site_changed', siteId);
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
