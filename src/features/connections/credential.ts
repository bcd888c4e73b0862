import { decryptedOrNot, type Encryption } from '../../platform/encryption.ts';
import type { EncryptedRows } from '../../platform/reencryption.ts';
import type { ConnectionStore, StoredConnection } from './connection-store.ts';
import type { OAuthTokens, Registration } from './oauth.ts';
import type { McpServerStore } from './server-store.ts';

/** What Postern sends to an external server for a person. No response, log or audit event shows it. */
export type Credential =
  | { readonly kind: 'header'; readonly value: string }
  | ({ readonly kind: 'oauth' } & OAuthTokens);

export function encryptCredential(
  encryption: Encryption,
  place: { readonly id: string; readonly url: string },
  credential: Credential,
): string {
  return encryption.encrypt(JSON.stringify(credential), contextOf(place));
}

/** Undefined: no key of ENCRYPTION_KEY decrypts it, or the origin of the server has changed since. */
export function readCredential(
  encryption: Encryption,
  { id, encrypted }: Pick<StoredConnection, 'id' | 'encrypted'>,
  url: string,
): Credential | null | undefined {
  if (encrypted === null) return null;
  const text = decryptedOrNot(() => encryption.decrypt(encrypted, contextOf({ id, url })));
  // Sound: encryptCredential() wrote it, and the encryption detects every change.
  return text === undefined ? undefined : (JSON.parse(text) as Credential);
}

/** Includes the origin: a changed row must not send the credential to another server. */
function contextOf({ id, url }: { readonly id: string; readonly url: string }): string {
  return `mcp-connection:${id}:${new URL(url).origin}`;
}

export function encryptRegistration(
  encryption: Encryption,
  place: { readonly slug: string; readonly issuer: string },
  registration: Registration,
): string {
  return encryption.encrypt(JSON.stringify(registration), registrationContext(place));
}

/** Null: Postern is not registered there, or no key of ENCRYPTION_KEY decrypts it. */
export function readRegistration(
  encryption: Encryption,
  place: { readonly slug: string; readonly issuer: string },
  encrypted: string | null,
): Registration | null {
  if (encrypted === null) return null;
  const text = decryptedOrNot(() => encryption.decrypt(encrypted, registrationContext(place)));
  // Sound: encryptRegistration() wrote it, and the encryption detects every change.
  return text === undefined ? null : (JSON.parse(text) as Registration);
}

function registrationContext({ slug, issuer }: { readonly slug: string; readonly issuer: string }) {
  return `mcp-server-registration:${slug}:${issuer}`;
}

type ServerPlace = { readonly slug: string; readonly url: string; readonly issuer: string | null };

/** The client secret from the operator of a server. Without an issuer, it is not sent anywhere. */
export function encryptClientSecret(encryption: Encryption, place: ServerPlace, secret: string): string {
  return encryption.encrypt(secret, clientContext(place));
}

/** Undefined: no key of ENCRYPTION_KEY decrypts it, or it is bound to another issuer or another origin of the server. */
export function readClientSecret(
  encryption: Encryption,
  place: ServerPlace,
  encrypted: string,
): string | undefined {
  return decryptedOrNot(() => encryption.decrypt(encrypted, clientContext(place)));
}

/** Includes the issuer: the secret must reach only the authorization server that an administrator accepted for it. */
function clientContext({ slug, url, issuer }: ServerPlace): string {
  const place = `mcp-server-client:${slug}:${new URL(url).origin}`;
  return issuer === null ? place : `${place}:${issuer}`;
}

/** The secrets of clients at all servers, for a new ENCRYPTION_KEY. */
export function encryptedClientSecrets(
  store: Pick<McpServerStore, 'clientSecretsUnderOtherKeys' | 'replaceClientSecret'>,
): EncryptedRows {
  return async (mark, after, limit) =>
    (await store.clientSecretsUnderOtherKeys(mark, after, limit)).map(({ slug, url, issuer, encrypted }) => ({
      id: slug,
      encrypted,
      context: clientContext({ slug, url, issuer }),
      replace: (fresh) => store.replaceClientSecret(slug, encrypted, fresh),
    }));
}

/** The credentials of all connections, for a new ENCRYPTION_KEY. */
export function encryptedConnections(
  store: Pick<ConnectionStore, 'underOtherKeys' | 'replaceEncrypted'>,
): EncryptedRows {
  return async (mark, after, limit) =>
    (await store.underOtherKeys(mark, after, limit)).map(({ id, encrypted, url }) => ({
      id,
      encrypted,
      context: contextOf({ id, url }),
      replace: (fresh) => store.replaceEncrypted(id, encrypted, fresh),
    }));
}

/** The registrations of Postern at the authorization servers, for a new ENCRYPTION_KEY. */
export function encryptedRegistrations(
  store: Pick<McpServerStore, 'registrationsUnderOtherKeys' | 'replaceRegistration'>,
): EncryptedRows {
  return async (mark, after, limit) =>
    (await store.registrationsUnderOtherKeys(mark, after, limit)).map(({ slug, issuer, encrypted }) => ({
      id: slug,
      encrypted,
      context: registrationContext({ slug, issuer }),
      replace: (fresh) => store.replaceRegistration(slug, encrypted, fresh),
    }));
}
