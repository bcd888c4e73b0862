import { AppError } from '../../core/errors.ts';
import type { TrailPosition } from './audit.ts';

/** A place in the trail as the text callers hand back. Opaque to them: its form may change any day. */
export function encodeCursor({ at, seq }: TrailPosition): string {
  return Buffer.from(`${at}.${seq}`).toString('base64url');
}

/** Throws `invalid_query` for anything encodeCursor() did not make. */
export function decodeCursor(cursor: string): TrailPosition {
  const match = /^(\d{1,15})\.(\d{1,18})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'));
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new AppError('invalid_query', {
      message: 'cursor: must be a cursor this API gave out',
      details: { fields: [{ field: 'cursor', problem: 'must be a cursor this API gave out' }] },
    });
  }
  return { at: Number(match[1]), seq: match[2] };
}
