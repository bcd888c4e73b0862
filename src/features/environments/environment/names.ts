import { AppError } from '../../../core/errors.ts';
import { type Random, randomFrom } from '../../../core/ids.ts';

/** Words in the paths of routes and pages: an Environment with such a name could not be addressed. */
const reservedNames: readonly string[] = ['policy', 'branches', 'config-preview', 'new'];
export const namePattern = /^[a-z0-9][a-z0-9-]{1,48}[a-z0-9]$/;

/** A name from part of the branch and six random characters. */
export function nameFor(branch: string, random: Random): string {
  const words = branch
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^-+|-+$/g, '');
  const end = randomFrom(random, 'abcdefghijkmnpqrstuvwxyz23456789', 6);
  return words === '' ? `env-${end}` : `${words}-${end}`;
}

/** @throws AppError invalid_name */
export function requireName(name: string): string {
  if (reservedNames.includes(name))
    throw new AppError('invalid_name', {
      message: `${name} is a word of an address.`,
      hint: 'Choose another name.',
    });
  if (namePattern.test(name)) return name;
  throw new AppError('invalid_name', {
    message:
      'The name of an Environment is 3 to 50 characters a–z, 0–9 and -, and neither begins nor ends with -.',
    hint: 'Choose another name, or send none.',
  });
}

/** The error for a name that an Environment already has. */
export function nameTaken(name: string): AppError {
  return new AppError('name_conflict', {
    message: `There is an Environment with the name ${name}.`,
    hint: 'Choose another name, or send none.',
  });
}
