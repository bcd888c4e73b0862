import { AppError } from '../core/errors.ts';

/** Rethrows what a disk answered; that it, or the quota on it, is full as the answer that deserves. */
export function unlessFull(error: unknown): never {
  const isFull =
    error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
  throw isFull ? new AppError('storage_full', { cause: error }) : error;
}
