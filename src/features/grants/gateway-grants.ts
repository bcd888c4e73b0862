import { second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { within } from '../../platform/kv/deadline.ts';
import type { Kv, KvValues } from '../../platform/kv/kv.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import { endedGrant, type GrantRecord, readCode, readGrant, writeGrant } from './records.ts';
import { memoizeRead } from './memoize-read.ts';
import { stateKey } from './grant-kind.ts';
import { safePath } from './return-path.ts';
import type { GrantSigner } from './grant-signer.ts';
import { readState } from './target-states.ts';
import { readSwitch } from './switch-records.ts';

/**
 * The gateway's part of the way into a private site or an Environment (private-access.md 2.2, steps 5 to 8). redeem() turns a one-time code
 * into a grant. check() decides for each request whether the browser's grant still opens this one host, in one round trip
 * to the key-value store. Neither asks the database or the identity service. A record that cannot be read as expected
 * gives no access.
 */
export type KnownTarget = {
  readonly id: string;
  /** The newest epoch that this process has received from the database (contract 10.3). */
  readonly epoch: number;
  readonly expiresAt: number | null;
};

export type Refusal = {
  /** A fixed word for the audit log. */
  readonly reason: string;
  readonly targetId: string | null;
};

export type GrantCheck =
  | { readonly kind: 'granted'; readonly targetId: string; readonly until: number; readonly now: number }
  | { readonly kind: 'none'; readonly now: number };

export type Redemption =
  | {
      readonly kind: 'granted';
      readonly cookie: string;
      readonly maxAgeSeconds: number;
      /** The path to redirect to, on this host. */
      readonly path: string;
      /** Milliseconds, by the store's clock. */
      readonly now: number;
    }
  | { readonly kind: 'refused' };

/** What a browser requests, and with which cookie. */
export type GrantQuestion = {
  readonly host: string;
  readonly site: KnownTarget | undefined;
  /** The grant's cookie; undefined when there is none, or two. */
  readonly cookie: string | undefined;
  /** Called only for a refusal that must be reported. */
  readonly from: () => Origin;
};

export type GatewayGrants = {
  /**
   * Whether this cookie is a grant for this host. A value that we did not generate takes no lookup, and none takes one of
   * the site, so the time reveals nothing about a label to anyone who holds no grant for it (threat T31).
   * Returns at once when the store does; otherwise within 150 ms.
   * @throws AppError store_unavailable
   */
  isFor(cookie: string | undefined, host: string): boolean | Promise<boolean>;
  /**
   * Returns at once when the store does; otherwise within 150 ms.
   * @throws AppError store_unavailable
   */
  check(question: GrantQuestion): GrantCheck | Promise<GrantCheck>;
  /** @throws AppError store_unavailable */
  redeem(at: {
    origin: string;
    host: string;
    code: string;
    /** The value that binds the code to one browser. */
    binding: string;
    from: Origin;
  }): Promise<Redemption>;
  /** Reports a post that is not a redemption at all to the audit log. */
  refuse(reason: string, from: Origin): void;
  /** Encrypts the return path into a ticket (step 2). */
  ticketFor(path: string, host: string, now: number): string;
};

/** Where a refused request came from. */
export type Origin = { readonly address: string | null; readonly agent: string | null };

/** The gateway serves private content, or reports that it cannot, within this time (threat T16). */
const answerMs = 150;
/** None of our processes writes a record that is further in the future than their clocks may differ (threat T14). */
const maxSkewMs = 2 * second;
const codeShape = /^[A-Za-z0-9_-]{43}$/;

/** Number of cookies. */
const maxKnown = 5_000;

/**
 * A site is the same object until something about it changes, so the text of its key can be cached. A private page of
 * 1 KiB takes 9.3 µs; without this 0.25 more, and P6 is nearer to its floor.
 */
const stateKeys = new WeakMap<KnownTarget, string>();

export function createGatewayGrants(deps: {
  kv: Pick<Kv, 'getAll' | 'take' | 'setIfAbsent' | 'delete'>;
  signer: GrantSigner;
  refused: (refusal: Refusal, from: Origin) => void;
  /** Called for a record that was changed, truncated or written by something else. */
  onCorrupt: () => void;
}): GatewayGrants {
  const { kv, signer } = deps;
  const { switchKey } = signer.kind;
  const noState = stateKey(signer.kind, '');
  const grantAt = memoizeRead((key, value) => readGrant(signer, key, value));
  const stateAt = memoizeRead((key, value) => readState(signer, key, value));
  const switchAt = memoizeRead((_key, value) => readSwitch(signer, value));

  function stateKeyOf(site: KnownTarget): string {
    const known = stateKeys.get(site);
    if (known !== undefined) return known;
    const key = stateKey(signer.kind, site.id);
    stateKeys.set(site, key);
    return key;
  }

  /**
   * Reads the value of each key and the store's clock, or throws `store_unavailable`. Values that are available immediately are not
   * wrapped in a promise: a private page of 1 KiB takes 9.3 µs, and promises 0.8 more, with which P6 misses its floor.
   */
  function ask(keys: readonly string[]): KvValues | Promise<KvValues> {
    const values = kv.getAll(keys);
    return values instanceof Promise ? within(answerMs, values, () => slow) : values;
  }

  function corrupt(
    what: 'grant' | 'state' | 'switch',
    targetId: string | null,
    from: () => Origin,
  ): undefined {
    deps.onCorrupt();
    deps.refused({ reason: `corrupt_${what}`, targetId }, from());
    return undefined;
  }

  /** Whether the site, whose state is stored at `key`, and Sites as a whole are unchanged since the grant was issued. */
  function isCurrent(
    key: string,
    { targetId, epoch, generation }: Pick<GrantRecord, 'targetId' | 'epoch' | 'generation'>,
    stateText: string | null | undefined,
    switchText: string | null | undefined,
    now: number,
    from: () => Origin,
  ): { readonly expiresAt: number | null } | undefined {
    if (typeof stateText !== 'string' || typeof switchText !== 'string') return undefined;
    const service = switchAt(switchKey, switchText) ?? corrupt('switch', targetId, from);
    const state = stateAt(key, stateText) ?? corrupt('state', targetId, from);
    if (service === undefined || state === undefined) return undefined;
    if (!service.isOn || service.generation !== generation) return undefined;
    if (state.targetId !== targetId || !state.isPrivate || !state.isOpen || state.epoch !== epoch)
      return undefined;
    return state.expiresAt !== null && state.expiresAt <= now ? undefined : { expiresAt: state.expiresAt };
  }

  /** Interprets the store's values. `forget`: the record must be deleted, so that it is reported only once. */
  function judge(
    { host, site, from }: GrantQuestion,
    key: string | undefined,
    stateKeyOfTarget: string,
    { values, now }: KvValues,
  ): GrantCheck | { readonly kind: 'forget'; readonly key: string; readonly now: number } {
    const none = { kind: 'none', now } as const;
    const text = values[0];
    if (key === undefined || typeof text !== 'string' || text === endedGrant) return none;
    const grant = grantAt(key, text) ?? corrupt('grant', site?.id ?? null, from);
    if (grant === undefined) return { kind: 'forget', key, now };
    if (grant.host !== host || (site !== undefined && grant.targetId !== site.id)) {
      deps.refused({ reason: 'grant_of_another_host', targetId: grant.targetId }, from());
      return none;
    }
    if (grant.issuedAt > now + maxSkewMs) {
      // The store's clock was set back, perhaps by a failover. By that clock, the grant would last longer than it may.
      deps.onCorrupt();
      deps.refused({ reason: 'clock_skew', targetId: grant.targetId }, from());
      return { kind: 'forget', key, now };
    }
    if (site === undefined || grant.epoch < site.epoch || grant.endsAt <= now) return none;
    const current = isCurrent(stateKeyOfTarget, grant, values[1], values[2], now, from);
    if (current === undefined) return none;
    const until = Math.min(grant.endsAt, current.expiresAt ?? Infinity, site.expiresAt ?? Infinity);
    return until > now ? { kind: 'granted', targetId: grant.targetId, until, now } : none;
  }

  /** The host of each cookie that gave access: with Redis, isFor() would cost each asset a second round trip. */
  const hosts = new Map<string, string>();

  function settle(
    question: GrantQuestion,
    key: string | undefined,
    state: string,
    found: KvValues,
  ): GrantCheck | Promise<GrantCheck> {
    const judged = judge(question, key, state, found);
    if (judged.kind === 'forget')
      return kv.delete(judged.key).then(() => ({ kind: 'none', now: judged.now }));
    const { cookie, host } = question;
    if (judged.kind === 'granted' && cookie !== undefined) {
      if (hosts.size >= maxKnown) hosts.clear();
      hosts.set(cookie, host);
    }
    return judged;
  }

  return {
    isFor(cookie, host) {
      const key = cookie === undefined ? undefined : signer.grantKeyOf(cookie);
      if (cookie === undefined || key === undefined) return false;
      const known = hosts.get(cookie);
      if (known !== undefined) return known === host;
      // A damaged record is reported with its site, so the site is looked up.
      const decide = ({ values: [text] }: KvValues) =>
        typeof text === 'string' && text !== endedGrant && (grantAt(key, text)?.host ?? host) === host;
      const found = ask([key]);
      return found instanceof Promise ? found.then(decide) : decide(found);
    },

    check(question) {
      const { cookie, site } = question;
      const key = cookie === undefined ? undefined : signer.grantKeyOf(cookie);
      const state = site === undefined ? noState : stateKeyOf(site);
      const decide = (found: KvValues) => settle(question, key, state, found);
      // The lookups are the same whether or not there is a grant or a site, so that timing reveals nothing (threat
      // T31).
      const answer = ask([key ?? 'grant:none', state, switchKey]);
      return answer instanceof Promise ? answer.then(decide) : decide(answer);
    },

    async redeem({ origin, host, code, binding, from }) {
      const refuse = (reason: string, targetId: string | null): Redemption => {
        deps.refused({ reason, targetId }, from);
        return { kind: 'refused' };
      };
      if (!codeShape.test(code)) return refuse('code_malformed', null);
      const key = signer.codeKeyOf(code);
      // The code is read and deleted in one step: whatever follows, it cannot be used again (threat T03).
      const text = await kv.take(key);
      if (text === null) return refuse('code_unknown', null);
      const record = readCode(signer, key, text);
      if (record === undefined) {
        deps.onCorrupt();
        return refuse('corrupt_code', null);
      }
      const { targetId } = record;
      if (record.host !== host) return refuse('code_of_another_host', targetId);
      if (record.binding !== secretDigest(binding)) return refuse('code_of_another_browser', targetId);
      const state = stateKey(signer.kind, targetId);
      const { values, now } = await ask([state, switchKey]);
      if (record.endsAt <= now || record.issuedAt > now + maxSkewMs) return refuse('code_expired', targetId);
      if (isCurrent(state, record, values[0], values[1], now, () => from) === undefined)
        return refuse('site_changed', targetId);
      const { binding: _binding, ticket, ...grant } = record;
      const generated = signer.grantOf(code);
      const ttlMs = record.endsAt - now;
      // Something is stored there already when the grant was ended before the browser sent its code.
      if (!(await kv.setIfAbsent(generated.key, writeGrant(signer, generated.key, grant), { ttlMs })))
        return refuse('grant_ended', targetId);
      return {
        kind: 'granted',
        cookie: generated.cookie,
        maxAgeSeconds: Math.max(1, Math.floor(ttlMs / second)),
        path: safePath(signer.decryptPath(ticket, host, now), origin),
        now,
      };
    },

    refuse: (reason, from) => deps.refused({ reason, targetId: null }, from),
    ticketFor: (path, host, now) => signer.encryptPath(path, host, now),
  };
}

const slow = new AppError('store_unavailable');
