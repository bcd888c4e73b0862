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

type LetIn = {
  readonly key: string;
  readonly host: string;
  readonly site: KnownSite;
  readonly values: KvValues['values'];
  /** Milliseconds, by the store's clock: the time in which these records let in. */
  readonly from: number;
  readonly until: number;
};

/** Cookies. */
const mostLetIn = 5_000;

/** The same records, and the same of everything else that counts, say the same for as long as they last. */
function asBefore(
  before: LetIn,
  { host, site }: GrantQuestion,
  { values, now }: KvValues,
): GrantCheck | undefined {
  if (site === undefined || before.site !== site || before.host !== host) return undefined;
  if (now < before.from || now >= before.until) return undefined;
  if (values[0] !== before.values[0] || values[1] !== before.values[1] || values[2] !== before.values[2])
    return undefined;
  return { kind: 'granted', siteId: site.id, until: before.until, now };
}

const noState = stateKey('');

/** A site is the same object until something about it changes, and its key the same text. */
const stateKeys = new WeakMap<KnownSite, string>();

function stateKeyOf(site: KnownSite): string {
  const known = stateKeys.get(site);
  if (known !== undefined) return known;
  const key = stateKey(site.id);
  stateKeys.set(site, key);
  return key;
}

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
    stateText: string | null | undefined,
    switchText: string | null | undefined,
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
    key: string | undefined,
    stateKeyOfSite: string,
    { values, now }: KvValues,
  ): GrantCheck | { readonly kind: 'forget'; readonly key: string; readonly now: number } {
    const none = { kind: 'none', now } as const;
    const text = values[0];
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
    const current = isCurrent(stateKeyOfSite, grant, values[1], values[2], now, from);
    if (current === undefined) return none;
    const until = Math.min(grant.endsAt, current.expiresAt ?? Infinity, site.expiresAt ?? Infinity);
    return until > now ? { kind: 'granted', siteId: grant.siteId, until, now } : none;
  }

  /** How the last question with a cookie was answered, if it was let in. */
  const letIn = new Map<string, LetIn>();

  function settle(
    question: GrantQuestion,
    key: string | undefined,
    state: string,
    found: KvValues,
  ): GrantCheck | Promise<GrantCheck> {
    const judged = judge(question, key, state, found);
    if (judged.kind === 'forget')
      return kv.delete(judged.key).then(() => ({ kind: 'none', now: judged.now }));
    const { cookie, site, host } = question;
    if (judged.kind === 'granted' && key !== undefined && cookie !== undefined && site !== undefined) {
      if (letIn.size >= mostLetIn) letIn.clear();
      const { until, now } = judged;
      letIn.set(cookie, { key, host, site, values: found.values, from: now, until });
    }
    return judged;
  }

  return {
    check(question) {
      const { cookie, site } = question;
      const before = cookie === undefined ? undefined : letIn.get(cookie);
      const key = before?.key ?? (cookie === undefined ? undefined : seal.grantKeyOf(cookie));
      const state = site === undefined ? noState : stateKeyOf(site);
      const decide = (found: KvValues) =>
        (before === undefined ? undefined : asBefore(before, question, found)) ??
        settle(question, key, state, found);
      // The same questions whether or not there is a grant or a site: nothing to tell apart by time (threat T31).
      const answer = ask([key ?? 'grant:none', state, switchKey]);
      return answer instanceof Promise ? answer.then(decide) : decide(answer);
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
      if (isCurrent(state, record, values[0], values[1], now, () => from) === undefined)
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
