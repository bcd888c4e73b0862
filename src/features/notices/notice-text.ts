import type { Notice } from './notices.ts';

/** The sentence people read, with what to do about it. The name is the owner's own text; pages must escape it. */
export function noticeText({ kind, keyId, fields }: Pick<Notice, 'kind' | 'keyId' | 'fields'>): string {
  const key = `The key “${fields.keyName}” (${keyId})`;
  const when = fields.expiresAt === undefined ? '' : ` (${fields.expiresAt})`;
  switch (kind) {
    case 'key_expires_7d':
      return `${key} expires within 7 days${when}. Rotate it to keep its scripts working.`;
    case 'key_expires_1d':
      return `${key} expires within a day${when}. Rotate it now to keep its scripts working.`;
    case 'key_expired':
      return `${key} has expired${when}. Scripts that still send it are refused.`;
    case 'key_exposed':
      return `${key} was sent where no key may be, such as a URL. Treat it as leaked: create a replacement and revoke it.`;
    case 'key_dead_use':
      return `${key} no longer works, but somebody still uses it. Look in its timeline for the address it comes from.`;
    case 'key_suspended':
      return `${key} is suspended because its owner’s account is disabled. It works again once the account is enabled.`;
  }
}
