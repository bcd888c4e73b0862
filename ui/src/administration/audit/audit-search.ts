import { given, oneOf, type Raw, textFrom } from '../search.ts';

/** The filters of the audit log, kept in the address, so that a finding can be shared as a link. */
export const outcomes = ['success', 'denied', 'failure'] as const;
export const spans = ['1h', '24h', '7d', '30d'] as const;
export type Span = (typeof spans)[number];

export type AuditSearch = {
  readonly actor?: string;
  readonly event?: string;
  readonly target?: string;
  readonly outcome?: (typeof outcomes)[number];
  readonly requestId?: string;
  readonly keyId?: string;
  /** A time span up to now. */
  readonly span?: Span;
  /** A day in the user's time zone, instead of a span. */
  readonly from?: string;
  readonly to?: string;
};

const dayFrom = (raw: unknown) => {
  const text = textFrom(raw);
  return text !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))
    ? text
    : undefined;
};

export function auditSearch(raw: Raw): AuditSearch {
  return given({
    actor: textFrom(raw['actor']),
    event: textFrom(raw['event']),
    target: textFrom(raw['target']),
    outcome: oneOf(raw['outcome'], outcomes),
    requestId: textFrom(raw['requestId']),
    keyId: textFrom(raw['keyId']),
    span: oneOf(raw['span'], spans),
    from: dayFrom(raw['from']),
    to: dayFrom(raw['to']),
  });
}

const spanMs: Readonly<Record<Span, number>> = {
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 7 * 86_400_000,
  '30d': 30 * 86_400_000,
};

/** The time range of the query. A span begins at a whole minute, so that the query key stays the same for a minute. */
export function rangeOf({ span, from, to }: AuditSearch, now: number): { from?: string; to?: string } {
  if (span !== undefined) {
    const start = now - spanMs[span];
    return { from: new Date(start - (start % 60_000)).toISOString() };
  }
  return given({
    from: from === undefined ? undefined : new Date(`${from}T00:00`).toISOString(),
    // Includes the whole last day.
    to: to === undefined ? undefined : new Date(Date.parse(`${to}T00:00`) + 86_400_000).toISOString(),
  });
}
