import { z } from 'zod';
import { branchNamePattern } from './git/remote.ts';

/** Schemas that every feature uses. Objects are strict: an unknown field is refused (contract 2). */
export const timestampSchema = z.iso.datetime({ precision: 3 }).describe('RFC 3339, UTC, milliseconds');

/** A number in a query string. */
function queryInteger(min: number, max: number, fallback: number) {
  const words = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, words)
    .transform(Number)
    .pipe(z.number().int().min(min, words).max(max, words))
    .default(fallback);
}

/** `true` or `false` in a query string. The OpenAPI document describes a boolean. */
export const queryFlag = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .pipe(z.boolean());

export const pageQuery = { page: queryInteger(1, 1_000_000, 1), limit: queryInteger(1, 100, 25) };

export const cursorQuery = {
  cursor: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,200}$/, 'must be the nextCursor of an earlier response')
    .optional(),
  limit: queryInteger(1, 100, 25),
};

/** The name of a branch, as git allows it. A reader must see every character: the branches that get secrets have names like it. */
export const branchName = z
  .string()
  .max(250)
  .regex(branchNamePattern, 'must be a git branch name, by the rules of git check-ref-format')
  .refine((name) => !/[\p{Cf}\u2028\u2029]/u.test(name), 'must not contain invisible characters');

/** Text without control characters: PostgreSQL cannot store NUL, and the others can only deceive a reader. */
export function plainText(max: number) {
  return (
    z
      .string()
      .refine((text) => !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(text), 'must not contain control characters')
      // The two joiners are allowed: emoji and several scripts need them.
      .refine(
        (text) => !/(?![\u200c\u200d])\p{Cf}/u.test(text),
        'must not contain invisible characters or characters that change the text direction',
      )
      .transform((text) => text.trim())
      .refine(
        // Counted in code points, as a person would count an emoji.
        (text) => text.length >= 1 && Array.from(text).length <= max,
        `must be 1 to ${max} characters`,
      )
      .meta({ minLength: 1, maxLength: max })
  );
}

/** An id in a path, without further validation: a wrong id is 404, like a missing resource. `example` is for readers. */
export function idParams(description: string, example: string) {
  return z.strictObject({ id: z.string().meta({ description, examples: [example] }) });
}
