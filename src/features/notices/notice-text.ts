import type { NoticeSubject } from './notices.ts';

/** The text of a notice, with what to do about it. It contains a name that the owner chose; pages must escape it. */
export function noticeText(subject: NoticeSubject): string {
  if ('environmentId' in subject) return textOfEnvironment(subject);
  if ('userId' in subject) return textOfAccount(subject);
  return 'siteId' in subject ? textOfSite(subject) : textOfKey(subject);
}

function textOfEnvironment(subject: Extract<NoticeSubject, { environmentId: string }>): string {
  const { kind, environmentId, fields } = subject;
  const environment = `The Environment “${fields.environmentName}” (${environmentId})`;
  switch (kind) {
    case 'environment_deploy_failed': {
      const { branch, sha, reason, isServed } = fields;
      const what = sha === undefined ? `the branch ${branch}` : `${sha} of ${branch}`;
      const rest = isServed ? 'The previous deploy is still live.' : 'Nothing is live yet.';
      return `Postern could not deploy ${what} to the Environment “${fields.environmentName}” (${environmentId}): ${reason} ${rest}`;
    }
    case 'environment_expires_1d':
      return `${environment} ends within a day (${fields.expiresAt}). Extend its lease to keep it.`;
    case 'environment_expires_1h':
      return `${environment} ends within an hour (${fields.expiresAt}). Extend its lease now to keep it.`;
    case 'environment_expired':
      return `The lease of the Environment “${fields.environmentName}” (${environmentId}) ended (${fields.expiresAt}), and it was torn down. Create it again from its branch if you need it.`;
  }
}

function textOfAccount({ kind, fields }: Extract<NoticeSubject, { userId: string }>): string {
  const passkey = `the passkey “${fields.passkeyName}”`;
  switch (kind) {
    case 'passkey_added':
      return `Your account got ${passkey}. If you did not add it, remove it in Settings, Passkeys, and change your password.`;
    case 'passkey_removed':
      return `Your account lost ${passkey}. If you did not remove it, change your password.`;
    case 'passkey_copied':
      return `Postern refused a sign-in with ${passkey}, because its counter went back. Another device may have a copy. Remove it in Settings, Passkeys, and add a new one.`;
    case 'passkeys_reset':
      return 'All your passkeys and recovery codes were removed, and you were signed out everywhere. You can add new ones in Settings, Passkeys.';
    case 'recovery_code_used':
      return `Someone signed in to your account with your password and a recovery code. ${codesLeft(fields.codesLeft ?? 0)} If it was not you, change your password and create new codes in Settings, Passkeys.`;
  }
}

function codesLeft(count: number): string {
  if (count === 0) return 'No code is left.';
  return count === 1 ? 'One code is left.' : `${count} codes are left.`;
}

function textOfKey({ kind, keyId, fields }: Extract<NoticeSubject, { keyId: string }>): string {
  const key = `The key “${fields.keyName}” (${keyId})`;
  const when = fields.expiresAt === undefined ? '' : ` (${fields.expiresAt})`;
  switch (kind) {
    case 'key_expires_7d':
      return `${key} expires within 7 days${when}. Rotate it to keep its scripts working.`;
    case 'key_expires_1d':
      return `${key} expires within a day${when}. Rotate it now to keep its scripts working.`;
    case 'key_expired':
      return `${key} has expired${when}. Postern refuses requests that still send it.`;
    case 'key_exposed':
      return `${key} was sent where no key may be, such as a URL. Treat it as leaked: create a replacement and revoke it.`;
    case 'key_dead_use':
      return `${key} no longer works, but someone still sends it. Its timeline shows the address of the sender.`;
    case 'key_suspended':
      return `${key} is suspended because its owner’s account is disabled or lacks the role user. It works again once the account is enabled and has the role.`;
  }
}

function textOfSite({ kind, siteId, fields }: Extract<NoticeSubject, { siteId: string }>): string {
  const site = `The site “${fields.siteName}” (${siteId})`;
  switch (kind) {
    case 'site_taken_down':
      return `An administrator took down the site “${fields.siteName}” (${siteId}): “${fields.reason}”. Visitors cannot open it until an administrator reinstates it.`;
    case 'site_put_back':
      return `An administrator reinstated the site “${fields.siteName}” (${siteId}): “${fields.reason}”. Visitors can open it again, unless it has expired or was deleted.`;
    case 'site_expires_7d':
      return `${site} expires within 7 days (${fields.expiresAt}). Extend it to keep it served.`;
    case 'site_expires_1d':
      return `${site} expires within a day (${fields.expiresAt}). Extend it now to keep it served.`;
    case 'site_expired':
      return `${site} has expired (${fields.expiresAt}) and is no longer served. Extend it to serve it again. Postern removes it permanently some days after the expiry.`;
  }
}
