import { minute } from '../../core/clock.ts';
import type { GrantSigner } from './grant-signer.ts';

/**
 * The records in the key-value store about a browser's access: codes and grants. Each has a version, and a signature that
 * covers the name under which it is stored, so a copy under another name is invalid. Anything else is not a record and
 * gives no access (threat T15).
 */
export type CodeRecord = {
  readonly siteId: string;
  readonly userId: string;
  /** The one content host that the code is for, as browsers write it. */
  readonly host: string;
  readonly epoch: number;
  readonly generation: number;
  /** SHA-256 of the value that binds the browser. */
  readonly binding: string;
  /** Empty when the ticket was lost. */
  readonly ticket: string;
  /** In milliseconds of the store's clock; the grant's lifetime starts here. */
  readonly issuedAt: number;
  readonly endsAt: number;
};

export type GrantRecord = Omit<CodeRecord, 'binding' | 'ticket'>;

/** Maximum lifetime of a grant, whichever process wrote it (threat T12). */
export const maxGrantMs = 5 * minute;

export function writeCode(signer: GrantSigner, key: string, code: CodeRecord): string {
  return signer.sign(key, JSON.stringify([1, ...grantFields(code), code.binding, code.ticket]));
}

export function readCode(signer: GrantSigner, key: string, value: string): CodeRecord | undefined {
  const fields = readFields(signer, key, value, 10);
  const [binding, ticket] = fields?.slice(8) ?? [];
  const grant = fields && toGrant(fields);
  if (grant === undefined || typeof binding !== 'string' || typeof ticket !== 'string') return undefined;
  return { ...grant, binding, ticket };
}

export function writeGrant(signer: GrantSigner, key: string, grant: GrantRecord): string {
  return signer.sign(key, JSON.stringify([1, ...grantFields(grant)]));
}

export function readGrant(signer: GrantSigner, key: string, value: string): GrantRecord | undefined {
  const fields = readFields(signer, key, value, 8);
  return fields && toGrant(fields);
}

/** The members of a signed JSON list whose first is the version; undefined for anything else. */
export function readFields(
  signer: GrantSigner,
  key: string,
  value: string,
  count: number,
): readonly unknown[] | undefined {
  const text = signer.verify(key, value);
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
  if (endsAt <= issuedAt || endsAt - issuedAt > maxGrantMs) return undefined;
  return { siteId, userId, host, epoch, generation, issuedAt, endsAt };
}
