import { AppError } from '../../core/errors.ts';
import type { AuditPosition } from './audit-event.ts';

/** Encodes a position in the audit log as a cursor. Opaque to clients: its form may change at any time. */
export function encodeCursor({ at, seq }: AuditPosition): string {
  return Buffer.from(`${at}.${seq}`).toString('base64url');
}

/** Throws `invalid_query` for anything encodeCursor() did not make. */
export function decodeCursor(cursor: string): AuditPosition {
  const match = /^(\d{1,15})\.(\d{1,18})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new AppError('invalid_query', {
      message: 'cursor: must be the nextCursor of an earlier response',
      details: { fields: [{ field: 'cursor', problem: 'must be the nextCursor of an earlier response' }] },
    });
  }
  return { at: Number(match[1]), seq: match[2] };
}
