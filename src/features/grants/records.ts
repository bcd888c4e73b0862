import { minute } from '../../core/clock.ts';
import type { GrantSeal } from './seal.ts';

/**
 * What stands in the key-value store about a browser that is let in. Every record is signed for its key and has a
 * version; what does not read as exactly that is no record, and nobody is let in by it (threat T15).
 */
export type CodeRecord = {
  readonly siteId: string;
  readonly userId: string;
  /** The one content host it is for, as browsers write it. */
  readonly host: string;
  readonly epoch: number;
  readonly generation: number;
  /** SHA-256 of the value that binds the browser. */
  readonly binding: string;
  /** Empty when it was lost. */
  readonly ticket: string;
  /** By the store's clock, in milliseconds; the grant's time counts from here. */
  readonly issuedAt: number;
  readonly endsAt: number;
};

export type GrantRecord = Omit<CodeRecord, 'binding' | 'ticket'>;

/** How long a grant may last, whoever wrote it (threat T12). */
export const longestGrantMs = 5 * minute;

export function writeCode(seal: GrantSeal, key: string, code: CodeRecord): string {
  return seal.sign(key, JSON.stringify([1, ...grantFields(code), code.binding, code.ticket]));
}

export function readCode(seal: GrantSeal, key: string, value: string): CodeRecord | undefined {
  const fields = readFields(seal, key, value, 10);
  const [binding, ticket] = fields?.slice(8) ?? [];
  const grant = fields && toGrant(fields);
  if (grant === undefined || typeof binding !== 'string' || typeof ticket !== 'string') return undefined;
  return { ...grant, binding, ticket };
}

export function writeGrant(seal: GrantSeal, key: string, grant: GrantRecord): string {
  return seal.sign(key, JSON.stringify([1, ...grantFields(grant)]));
}

export function readGrant(seal: GrantSeal, key: string, value: string): GrantRecord | undefined {
  const fields = readFields(seal, key, value, 8);
  return fields && toGrant(fields);
}

/** The members of a signed JSON list whose first is the version; undefined for anything else. */
export function readFields(
  seal: GrantSeal,
  key: string,
  value: string,
  count: number,
): readonly unknown[] | undefined {
  const text = seal.verify(key, value);
  if (text === undefined) return undefined;
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  return Array.isArray(found) && found.length === count && found[0] === 1 ? found : undefined;
}

export function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function grantFields({ siteId, userId, host, epoch, generation, issuedAt, endsAt }: GrantRecord) {
  return [siteId, userId, host, epoch, generation, issuedAt, endsAt] as const;
}

function toGrant(fields: readonly unknown[]): GrantRecord | undefined {
  const [, siteId, userId, host, epoch, generation, issuedAt, endsAt] = fields;
  if (typeof siteId !== 'string' || typeof userId !== 'string' || typeof host !== 'string') return undefined;
  if (!isWhole(epoch) || !isWhole(generation) || !isWhole(issuedAt) || !isWhole(endsAt)) return undefined;
  if (endsAt <= issuedAt || endsAt - issuedAt > longestGrantMs) return undefined;
  return { siteId, userId, host, epoch, generation, issuedAt, endsAt };
}
