import type { Schemas } from '../../api/contract.ts';
import { ApiProblem } from '../../api/client.ts';

type Capabilities = Schemas['SiteCapabilities'];
export type Visibility = 'public' | 'private';

/** Input of the form for a new site. */
export type Draft = {
  readonly name: string;
  readonly visibility: Visibility;
  readonly expiry: Expiry;
  readonly spa: boolean;
};

export type Expiry =
  | { readonly kind: 'hours'; readonly hours: number }
  /** The end of a day, in the reader's own time zone; null until one is chosen. */
  | { readonly kind: 'date'; readonly day: string | null };

export type DraftErrors = { readonly [key in 'name' | 'visibility' | 'expiry']?: string };

/** Private if allowed: a site must not become public because a choice was missing. */
export function firstDraft({ allowedVisibility, defaultVisibility, ttl }: Capabilities): Draft {
  const [only = defaultVisibility] = allowedVisibility;
  return {
    name: '',
    visibility: allowedVisibility.includes(defaultVisibility) ? defaultVisibility : only,
    expiry: { kind: 'hours', hours: ttl.defaultHours },
    spa: false,
  };
}

const hour = 3_600_000;

/** Whole hours from now; null for an impossible day. */
export function hoursOf(expiry: Expiry, { maxHours }: Capabilities['ttl'], now: number): number | null {
  if (expiry.kind === 'hours') return expiry.hours;
  const end = expiry.day === null ? Number.NaN : Date.parse(`${expiry.day}T23:59:59`);
  const hours = Math.ceil((end - now) / hour);
  return Number.isNaN(hours) || hours < 1 ? null : Math.min(hours, maxHours);
}

export function mistakesIn(draft: Draft, { ttl, allowedVisibility }: Capabilities, now: number): DraftErrors {
  return {
    ...(/[\p{Cc}]/u.test(draft.name) ? { name: 'Use visible characters.' } : {}),
    ...(allowedVisibility.includes(draft.visibility) ? {} : { visibility: 'Choose who may see it.' }),
    ...(ttl.enabled && hoursOf(draft.expiry, ttl, now) === null
      ? { expiry: 'Choose a day in the future.' }
      : {}),
  };
}

export function requestOf(draft: Draft, { ttl }: Capabilities, now: number): Schemas['SiteCreate'] {
  const hours = ttl.enabled ? hoursOf(draft.expiry, ttl, now) : null;
  const name = draft.name.trim();
  return {
    visibility: draft.visibility,
    spa: draft.spa,
    ...(name === '' ? {} : { name }),
    ...(hours === null ? {} : { ttlHours: hours }),
  };
}

const fieldOf: Readonly<Record<string, keyof DraftErrors>> = {
  name: 'name',
  visibility: 'visibility',
  ttlHours: 'expiry',
};

/** The server's error for a field is shown beside that field. */
export function errorsFrom(error: unknown): DraftErrors {
  if (!(error instanceof ApiProblem)) return {};
  if (error.code === 'lifetime_too_long' || error.code === 'expiry_conflict')
    return { expiry: error.message };
  if (error.code === 'private_sites_unavailable' || error.code === 'visibility_not_allowed')
    return { visibility: error.message };
  const errors: Partial<Record<keyof DraftErrors, string>> = {};
  for (const { field, problem } of error.fields) {
    const known = fieldOf[field];
    if (known !== undefined) errors[known] = `It ${problem}.`;
  }
  return errors;
}
