import type { GrantKind } from './grant-kind.ts';
import type { GrantSigner } from './grant-signer.ts';

/**
 * The records in the key-value store about a browser's access: codes and grants. Each has a version, and a signature that
 * covers the name under which it is stored, so a copy under another name is invalid. Anything else is not a record and
 * gives no access (threat T15).
 */
export type CodeRecord = {
  /** The site or the Environment. */
  readonly targetId: string;
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

/** Stored in place of a grant that was ended before its time. Anyone who can write to the store could only deny with it. */
export const endedGrant = 'ended';

export function writeCode(signer: GrantSigner, key: string, code: CodeRecord): string {
  return signer.sign(key, JSON.stringify([1, ...grantFields(code), code.binding, code.ticket]));
}

export function readCode(signer: GrantSigner, key: string, value: string): CodeRecord | undefined {
  const fields = readFields(signer, key, value, 10);
  const [binding, ticket] = fields?.slice(8) ?? [];
  const grant = fields && toGrant(fields, signer.kind);
  if (grant === undefined || typeof binding !== 'string' || typeof ticket !== 'string') return undefined;
  return { ...grant, binding, ticket };
}

export function writeGrant(signer: GrantSigner, key: string, grant: GrantRecord): string {
  return signer.sign(key, JSON.stringify([1, ...grantFields(grant)]));
}

export function readGrant(signer: GrantSigner, key: string, value: string): GrantRecord | undefined {
  const fields = readFields(signer, key, value, 8);
  return fields && toGrant(fields, signer.kind);
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

function grantFields({ targetId, userId, host, epoch, generation, issuedAt, endsAt }: GrantRecord) {
  return [targetId, userId, host, epoch, generation, issuedAt, endsAt] as const;
}

function toGrant(fields: readonly unknown[], { maxMs }: GrantKind): GrantRecord | undefined {
  const [, targetId, userId, host, epoch, generation, issuedAt, endsAt] = fields;
  if (typeof targetId !== 'string' || typeof userId !== 'string' || typeof host !== 'string')
    return undefined;
  if (!isWhole(epoch) || !isWhole(generation) || !isWhole(issuedAt) || !isWhole(endsAt)) return undefined;
  if (endsAt <= issuedAt || endsAt - issuedAt > maxMs) return undefined;
  return { targetId, userId, host, epoch, generation, issuedAt, endsAt };
}
