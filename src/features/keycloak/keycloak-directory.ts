import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import type { Role } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import {
  claimsOf,
  isRecord,
  type KeycloakAnswer,
  type KeycloakClient,
  KeycloakTrouble,
} from './keycloak-client.ts';
import {
  type Directory,
  type Introspection,
  type Principal,
  bounded,
  readIntrospection,
  shareAnswers,
} from '../people/people.ts';

/** A JWS in compact form (RFC 7515 section 7.1), the form of all Keycloak tokens. Anything else is refused without a request. */
const tokenShape = /^[A-Za-z0-9_-]{1,2000}\.[A-Za-z0-9_-]{1,20000}\.[A-Za-z0-9_-]{1,2000}$/;

const keysKeptMs = 5 * 60_000;
/** An unknown key id may belong to a new key, so fetch the keys again, but only this often: clients can send any key id. */
const keysAgainMs = 10_000;

/** The people that the realm has confirmed before: only these can be reported as deleted. */
export type KnownSubjects = {
  has(subject: string): Promise<boolean>;
  /** Must not wait and must not fail. */
  note(subject: string): void;
};

/**
 * The directory of a Keycloak realm. An answer is shared for 100 ms and then dropped, so a change by an administrator in
 * Keycloak takes effect after that. Only answers in Keycloak's own form count: a 404 from a proxy or from a deleted realm
 * does not mean that the person is missing. A role counts as missing only when the role itself is visible.
 */
export function keycloakDirectory(deps: {
  issuer: string;
  clientId: string;
  roleNames: Readonly<Record<Role, string>>;
  client: Pick<KeycloakClient, 'read' | 'introspect' | 'publicDocument'>;
  known: KnownSubjects;
  /** False = the realm has not passed the self-test (self-test-state.ts); then the directory sends no request. */
  isProven: () => Promise<boolean>;
  clock: Clock;
  /** Never goes back. */
  steady: Clock;
  timeoutMs: number;
}): Directory {
  const { issuer, clientId, roleNames, client, known, clock, steady, timeoutMs } = deps;
  let keys: { readonly set: JSONWebKeySet; readonly readAt: number } | undefined;

  async function proven(): Promise<void> {
    if (!(await deps.isProven())) throw new KeycloakTrouble('self_test_not_passed');
  }

  async function look(subject: string): Promise<Principal> {
    await proven();
    const path = `/users/${encodeURIComponent(subject)}`;
    const roles = client.read(`${path}/role-mappings/realm/composite`);
    // Awaited below, unless the first answer makes it unnecessary; until then a rejection must not be unhandled.
    roles.catch(() => undefined);
    const user = readUser(await client.read(path), subject);
    if (user === undefined) return { kind: 'missing', wasKnown: await known.has(subject) };
    known.note(subject);
    if (!user.isEnabled) return { kind: 'disabled' };
    const names = readRoleNames(await roles);
    // Keycloak leaves out realm roles that this client may not see, and the answer still looks complete.
    if (!names.has(roleNames.user)) await mustSeeRole(roleNames.user);
    return {
      kind: 'active',
      subject,
      name: user.name,
      email: user.email,
      roles: (['user', 'admin'] as const).filter((role) => names.has(roleNames[role])),
    };
  }

  async function mustSeeRole(name: string): Promise<void> {
    const { status, body } = await client.read(`/roles/${encodeURIComponent(name)}`);
    if (status !== 200 || !isRecord(body) || body['name'] !== name)
      throw new KeycloakTrouble(`role_not_visible_${status}`);
  }

  const askAbout = (subject: string) => bounded(() => look(subject), timeoutMs, reasonOf);
  const askShared = shareAnswers(steady, askAbout);

  /**
   * Keycloak answers `inactive`, without a reason, also for a valid token that is not for this client (`aud` does not
   * contain it). That is a mistake in the realm's configuration and must not end the session (contract 10.1).
   */
  async function isMadeForOthers(token: string): Promise<boolean> {
    const claims = claimsOf(token);
    if (claims === undefined || [claims['aud']].flat().includes(clientId)) return false;
    return await isSignedNow(token, false);
  }

  async function isSignedNow(token: string, hasNewKeys: boolean): Promise<boolean> {
    const set = createLocalJWKSet(await signingKeys(hasNewKeys));
    try {
      await jwtVerify(token, set, { issuer, currentDate: new Date(clock.now()) });
      return true;
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey && !hasNewKeys) return await isSignedNow(token, true);
      return false;
    }
  }

  async function signingKeys(mustBeNew: boolean): Promise<JSONWebKeySet> {
    const age = keys === undefined ? Number.POSITIVE_INFINITY : Math.abs(clock.now() - keys.readAt);
    if (keys !== undefined && age < (mustBeNew ? keysAgainMs : keysKeptMs)) return keys.set;
    const { status, body } = await client.publicDocument('/protocol/openid-connect/certs');
    if (status !== 200 || !isKeySet(body)) throw new KeycloakTrouble('garbled_keys');
    keys = { set: body, readAt: clock.now() };
    return body;
  }

  /** Checks the audience in the answer, or in the token when the answer has none. False when neither has one (contract 10.1). */
  function isForUs(answer: Readonly<Record<string, unknown>>, token: string): boolean {
    return [answer['aud'] ?? claimsOf(token)?.['aud']].flat().includes(clientId);
  }

  async function introspect(token: string, hint: 'access_token' | 'refresh_token'): Promise<Introspection> {
    await proven();
    const answer = await client.introspect(token, hint);
    const found = readIntrospection(answer, { issuer, now: clock.now(), hint });
    // Since 26.6.2 Keycloak itself answers `inactive` then. Check it here too: an older Keycloak or a proxy may not.
    if (found.kind === 'active' && hint === 'access_token' && !isForUs(answer, token))
      return { kind: 'unavailable', reason: 'token_audience' };
    if (found.kind === 'inactive' && hint === 'access_token' && (await isMadeForOthers(token)))
      return { kind: 'unavailable', reason: 'token_audience' };
    return found;
  }

  const introspectAs = (hint: 'access_token' | 'refresh_token') =>
    shareAnswers(steady, (token) => bounded(() => introspect(token, hint), timeoutMs, reasonOf));
  const introspectShared = {
    access_token: introspectAs('access_token'),
    refresh_token: introspectAs('refresh_token'),
  };

  return {
    async introspect(token, hint = 'access_token') {
      if (!tokenShape.test(token) || claimsOf(token)?.['iss'] !== issuer) return { kind: 'inactive' };
      return await introspectShared[hint](token);
    },
    async principal(subject, { isOwn } = { isOwn: false }) {
      // In the path, an empty text, `.` or `..` would address something other than a user.
      if (/^\.{0,2}$/.test(subject)) return { kind: 'missing', wasKnown: false };
      return await (isOwn ? askAbout : askShared)(subject);
    },
  };
}

function reasonOf(error: unknown): string {
  if (error instanceof KeycloakTrouble) return error.reason;
  return error instanceof Error ? error.name : 'unknown';
}

/** Undefined: Keycloak itself says that no user has this id. @throws KeycloakTrouble */
function readUser({ status, body }: KeycloakAnswer, subject: string) {
  if (status === 404 && isRecord(body) && body['error'] === 'User not found') return undefined;
  if (status !== 200) throw new KeycloakTrouble(`user_status_${status}`);
  if (!isRecord(body) || body['id'] !== subject || typeof body['enabled'] !== 'boolean')
    throw new KeycloakTrouble('garbled_user');
  const text = (name: string) => (typeof body[name] === 'string' ? body[name].trim() : '');
  const email = text('email').slice(0, 320);
  const name = `${text('firstName')} ${text('lastName')}`.trim() || text('username') || subject;
  return { isEnabled: body['enabled'], name: name.slice(0, 200), email: email === '' ? null : email };
}

/** @throws KeycloakTrouble */
function readRoleNames({ status, body }: KeycloakAnswer): ReadonlySet<string> {
  if (status !== 200) throw new KeycloakTrouble(`roles_status_${status}`);
  if (!Array.isArray(body)) throw new KeycloakTrouble('garbled_roles');
  return new Set(
    body.map((role: unknown) => {
      if (!isRecord(role) || typeof role['name'] !== 'string') throw new KeycloakTrouble('garbled_roles');
      return role['name'];
    }),
  );
}

function isKeySet(body: unknown): body is JSONWebKeySet {
  return isRecord(body) && Array.isArray(body['keys']) && body['keys'].every(isRecord);
}
