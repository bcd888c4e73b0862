import { AppError } from '../../core/errors.ts';
import { decryptedOrNot, type Encryption } from '../../platform/encryption.ts';
import type { GitCredential } from '../../platform/git/git.ts';
import { knownHostsName, remoteAddress } from '../../platform/git/remote.ts';
import type { EncryptedRows } from '../../platform/reencryption.ts';
import type { CredentialStore, StoredCredential } from './credential-store.ts';

/**
 * How Postern signs in to the git server of one repository: a token for https, a private key for ssh. It is write-only:
 * no response, log, URL or list of processes shows it. It belongs to the origin of the clone URL and is sent nowhere
 * else.
 */
export type CredentialInput = {
  readonly token?: string | undefined;
  readonly user?: string | undefined;
  readonly privateKey?: string | undefined;
  readonly knownHosts?: string | undefined;
};

type Secret = { user: string; token: string } | { privateKey: string; knownHosts: string };

/** The user name for a token when none is given. Git hosts accept any name with a token. */
const defaultUser = 'git';

/** @throws AppError invalid_body when the credential does not fit the clone URL */
export function credentialFor(cloneUrl: string, input: CredentialInput): GitCredential {
  const to = remoteAddress(cloneUrl);
  const { token, user = defaultUser, privateKey, knownHosts } = input;
  if (to?.protocol === 'https' && token !== undefined)
    return { kind: 'token', origin: to.origin, user, token };
  if (to?.protocol === 'ssh' && privateKey !== undefined && knownHosts !== undefined) {
    const { host, port, origin } = to;
    if (!namesHost(knownHosts, knownHostsName(to)))
      throw new AppError('invalid_body', {
        message: `knownHosts has no line for ${host}${port === 22 ? '' : `, port ${port}`}.`,
        hint: `Send the output of: ssh-keyscan ${port === 22 ? '' : `-p ${port} `}${host}`,
      });
    return { kind: 'ssh_key', origin, privateKey, knownHosts };
  }
  throw new AppError('invalid_body', {
    message: `The clone URL ${cloneUrl} needs ${to?.protocol === 'ssh' ? 'privateKey and knownHosts' : 'token'}.`,
    hint: 'Send that credential, or change the clone URL first.',
  });
}

/** sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT". The host of a hashed line cannot be read here, so ssh decides. */
function namesHost(knownHosts: string, host: string): boolean {
  return knownHosts
    .split('\n')
    .map((line) => line.trim().split(/\s+/)[0] ?? '')
    .some((hosts) => hosts.startsWith('|1|') || hosts.toLowerCase().split(',').includes(host.toLowerCase()));
}

export function encryptCredential(
  encryption: Encryption,
  repositoryId: string,
  credential: GitCredential,
): StoredCredential {
  const { kind, origin } = credential;
  const secret: Secret =
    kind === 'token'
      ? { user: credential.user, token: credential.token }
      : { privateKey: credential.privateKey, knownHosts: credential.knownHosts };
  const encrypted = encryption.encrypt(
    JSON.stringify(secret),
    credentialContext({ repositoryId, kind, origin }),
  );
  return { repositoryId, kind, origin, encrypted };
}

/** With kind and origin: a changed row must not send the token to another server. */
function credentialContext({
  repositoryId,
  kind,
  origin,
}: Pick<StoredCredential, 'repositoryId' | 'kind' | 'origin'>): string {
  return `repository-credential:${repositoryId}:${kind}:${origin}`;
}

/** The credentials of all repositories, for a new ENCRYPTION_KEY. */
export function encryptedCredentials(
  store: Pick<CredentialStore, 'underOtherKeys' | 'replaceEncrypted'>,
): EncryptedRows {
  return async (mark, after, limit) =>
    (await store.underOtherKeys(mark, after, limit)).map((stored) => ({
      id: stored.repositoryId,
      encrypted: stored.encrypted,
      context: credentialContext(stored),
      replace: (fresh) => store.replaceEncrypted(stored.repositoryId, stored.encrypted, fresh),
    }));
}

/** For git alone. Null: the repository has none, or none of the keys in ENCRYPTION_KEY decrypts it. */
export async function readCredential(
  store: Pick<CredentialStore, 'find'>,
  encryption: Encryption,
  repositoryId: string,
): Promise<GitCredential | null> {
  const stored = await store.find(repositoryId);
  if (stored === undefined) return null;
  const text = decryptedOrNot(() => encryption.decrypt(stored.encrypted, credentialContext(stored)));
  if (text === undefined) return null;
  // Sound: encryptCredential() wrote it, and the encryption detects every change.
  return { kind: stored.kind, origin: stored.origin, ...(JSON.parse(text) as Secret) } as GitCredential;
}
