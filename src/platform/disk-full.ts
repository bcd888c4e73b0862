import { AppError } from '../core/errors.ts';

/** Rethrows an error of the file system. A full disk or quota becomes the error code for it. */
export function unlessFull(error: unknown): never {
  const isFull =
    error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
  throw isFull ? new AppError('storage_full', { cause: error }) : error;
}
