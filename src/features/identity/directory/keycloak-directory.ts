import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import type { Role } from '../../../core/caller.ts';
import type { Clock } from '../../../core/clock.ts';
import {
  claimsOf,
  isRecord,
  type KeycloakAnswer,
  type KeycloakServer,
  KeycloakTrouble,
} from '../keycloak/keycloak-server.ts';
import type { Directory, Introspection, Principal } from '../directory.ts';
import { bounded } from './bounded.ts';
import { readIntrospection } from './introspection.ts';

/** A JWS in compact form (RFC 7515 section 7.1), as Keycloak makes all its tokens. Anything else needs no question. */
const tokenShape = /^[A-Za-z0-9_-]{1,2000}\.[A-Za-z0-9_-]{1,20000}\.[A-Za-z0-9_-]{1,2000}$/;

const sharedMs = 250;
const keysKeptMs = 5 * 60_000;
/** A key that is not there may have been made a moment ago; but who sends made-up key ids must not make us ask. */
const keysAgainMs = 10_000;

/** Which people this installation has met: only of those can be said that they were deleted. */
export type KnownSubjects = {
  has(subject: string): Promise<boolean>;
  /** Must not wait and must not fail. */
  note(subject: string): void;
};

/**
 * The directory of a Keycloak realm. Nothing is remembered between two questions: what an administrator changes there
 * holds at the next. An answer counts only in the form Keycloak gives it; a 404 of a proxy or of a realm that is gone
 * is no missing person, and a role is missing only where the role itself can be seen.
 */
export function keycloakDirectory(deps: {
  issuer: string;
  clientId: string;
  roleNames: Readonly<Record<Role, string>>;
  server: Pick<KeycloakServer, 'read' | 'introspect' | 'publicDocument'>;
  known: KnownSubjects;
  /** False = the realm has not proved that it is set up rightly (keycloak/proof.ts); then nothing is asked. */
  isProven: () => Promise<boolean>;
  clock: Clock;
  timeoutMs: number;
}): Directory {
  const { issuer, clientId, roleNames, server, known, clock, timeoutMs } = deps;
  const asking = new Map<string, { readonly since: number; readonly answer: Promise<Principal> }>();
  let keys: { readonly set: JSONWebKeySet; readonly readAt: number } | undefined;

  async function proven(): Promise<void> {
    if (!(await deps.isProven())) throw new KeycloakTrouble('self_test_not_passed');
  }

  async function look(subject: string): Promise<Principal> {
    await proven();
    const path = `/users/${encodeURIComponent(subject)}`;
    const roles = server.read(`${path}/role-mappings/realm/composite`);
    // Awaited below, unless the first answer settles it.
    roles.catch(() => undefined);
    const user = readUser(await server.read(path), subject);
    if (user === undefined) return { kind: 'missing', wasKnown: await known.has(subject) };
    known.note(subject);
    if (!user.isEnabled) return { kind: 'disabled' };
    const names = readRoleNames(await roles);
    // Realm roles that this client may not see are left out of an answer that is otherwise fine.
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
    const { status, body } = await server.read(`/roles/${encodeURIComponent(name)}`);
    if (status !== 200 || !isRecord(body) || body['name'] !== name)
      throw new KeycloakTrouble(`role_not_visible_${status}`);
  }

  /** Those who ask at the same moment share one look; a moment later somebody may have changed something. */
  function askShared(subject: string): Promise<Principal> {
    const now = clock.now();
    const already = asking.get(subject);
    if (already !== undefined && Math.abs(now - already.since) < sharedMs) return already.answer;
    const answer = bounded(() => look(subject), timeoutMs, reasonOf);
    const mine = { since: now, answer };
    asking.set(subject, mine);
    void answer.finally(() => {
      if (asking.get(subject) === mine) asking.delete(subject);
    });
    return answer;
  }

  /**
   * Keycloak says `inactive`, without a reason, also of a good token that was not made for us (its `aud` lacks our
   * client): that is a mistake in the realm and not the end of a session (contract 10.1).
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
    const { status, body } = await server.publicDocument('/protocol/openid-connect/certs');
    if (status !== 200 || !isKeySet(body)) throw new KeycloakTrouble('garbled_keys');
    keys = { set: body, readAt: clock.now() };
    return body;
  }

  /** By the answer, or by the token where the answer says nothing of it. What neither says is for nobody (contract 10.1). */
  function isForUs(answer: Readonly<Record<string, unknown>>, token: string): boolean {
    return [answer['aud'] ?? claimsOf(token)?.['aud']].flat().includes(clientId);
  }

  async function introspect(token: string, hint: 'access_token' | 'refresh_token'): Promise<Introspection> {
    await proven();
    const answer = await server.introspect(token, hint);
    const found = readIntrospection(answer, { issuer, now: clock.now(), hint });
    // Keycloak itself says `inactive` then, since 26.6.2; a realm or a proxy that does not is not believed.
    if (found.kind === 'active' && hint === 'access_token' && !isForUs(answer, token))
      return { kind: 'unavailable', reason: 'token_audience' };
    if (found.kind === 'inactive' && hint === 'access_token' && (await isMadeForOthers(token)))
      return { kind: 'unavailable', reason: 'token_audience' };
    return found;
  }

  return {
    async introspect(token, hint = 'access_token') {
      if (!tokenShape.test(token) || claimsOf(token)?.['iss'] !== issuer) return { kind: 'inactive' };
      return await bounded(() => introspect(token, hint), timeoutMs, reasonOf);
    },
    async principal(subject) {
      // Would lead out of the path of users.
      if (/^\.{0,2}$/.test(subject)) return { kind: 'missing', wasKnown: false };
      return await askShared(subject);
    },
  };
}

function reasonOf(error: unknown): string {
  if (error instanceof KeycloakTrouble) return error.reason;
  return error instanceof Error ? error.name : 'unknown';
}

/** Undefined: Keycloak itself says that there is nobody of this id. @throws KeycloakTrouble */
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
