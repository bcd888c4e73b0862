import type { Key } from '../key-words.ts';
import { scopesOf } from '../new/access.ts';
import type { FieldErrors } from '../new/draft.ts';
import type { Rights } from '../rights.ts';

type Narrowed = { readonly name: string; readonly rights: Rights; readonly end: string };

/** Errors that the form finds before it sends the request. */
export function mistakesIn({ name, rights, end }: Narrowed, before: Key): FieldErrors {
  return {
    ...(name.trim() === '' ? { name: 'Give it a name.' } : {}),
    ...mistakesInRights(rights, before),
    ...mistakeInEnd(end, before.expiresAt),
  };
}

export function mistakesInRights(rights: Rights, before: Key): FieldErrors {
  const hadNone = before.repositories.mode === 'selected' && before.repositories.repositories.length === 0;
  return {
    ...(scopesOf(rights.access).length === 0
      ? { scopes: 'Keep at least one scope, or revoke the key.' }
      : {}),
    ...(rights.reach === 'selected' && rights.repositories.length === 0 && !hadNone
      ? { repositories: 'Keep at least one repository, or revoke the key.' }
      : {}),
  };
}

function mistakeInEnd(end: string, expiresAt: string | null): FieldErrors {
  if (end === '') return {};
  const at = Date.parse(end);
  if (Number.isNaN(at)) return { expiry: 'Choose a day and a time.' };
  return expiresAt !== null && at > Date.parse(expiresAt)
    ? { expiry: 'This is later than the current expiry. An edit can only make it earlier.' }
    : {};
}
