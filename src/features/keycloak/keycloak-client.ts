import { decodeJwt } from 'jose';
import type { Clock } from '../../core/clock.ts';
import { createFairQueue } from '../../platform/fair-queue.ts';
import type { Fetch } from '../../platform/fetch.ts';
import { createCircuit } from './circuit.ts';

/**
 * The HTTP client for one Keycloak realm: the few endpoints that Postern calls, each within two seconds, with a bounded
 * number of parallel requests. It returns answers unchanged; without an answer it throws KeycloakTrouble with a one-word
 * reason. It makes no decisions, and it cannot change anything at the provider.
 */
export type KeycloakClient = {
  /** Reads below /admin/realms/{realm} as the read-only client. Rejects with KeycloakTrouble. */
  read(path: string): Promise<KeycloakAnswer>;
  /** RFC 7662, as the read-only client. Rejects with KeycloakTrouble. */
  introspect(token: string, hint: 'access_token' | 'refresh_token'): Promise<Record<string, unknown>>;
  /** Introspects with any client's credentials: 200 when they are right. */
  introspectAs(client: ClientCredentials, token: string): Promise<KeycloakAnswer>;
  /** Requests a new token of the read-only client itself. Rejects with KeycloakTrouble. */
  ownToken(): Promise<string>;
  /**
   * Requests a token of the read-only client with one more scope. Undefined: the realm gives this client no such token. Rejects
   * with KeycloakTrouble.
   */
  ownTokenWith(scope: string): Promise<string | undefined>;
  /** Discovery, and the keys that sign tokens. */
  publicDocument(
    path: '/.well-known/openid-configuration' | '/protocol/openid-connect/certs',
  ): Promise<KeycloakAnswer>;
};

export type ClientCredentials = { readonly id: string; readonly secret: string };

/** `body` is undefined when the answer was not JSON. */
export type KeycloakAnswer = { readonly status: number; readonly body: unknown };

/** No answer, or an answer that cannot be parsed. `reason` is for logs and never quotes an answer. */
export class KeycloakTrouble extends Error {
  readonly reason: string;
  constructor(reason: string, options?: ErrorOptions) {
    super(`Keycloak gave no usable answer: ${reason}`, options);
    this.name = 'KeycloakTrouble';
    this.reason = reason;
  }
}

/** A token is not used in its last half minute: it must not expire during the request, even when the clocks differ. */
const spareMs = 30_000;
/** The number of parallel requests, and how many more may wait in the queue. */
const queue = { width: 32, perSender: 32, queue: 1_024 };

export function createKeycloakClient(deps: {
  issuer: string;
  principalSync: ClientCredentials;
  fetch: Fetch;
  clock: Clock;
  timeoutMs: number;
}): KeycloakClient {
  const { issuer, principalSync, clock, timeoutMs } = deps;
  const admin = adminAddress(issuer);
  const inTurn = createFairQueue(queue);
  const circuit = createCircuit({ clock });
  let token: { readonly value: string; readonly goodUntil: number } | undefined;
  let asking: Promise<string> | undefined;

  /** Sends one request. Retries only a broken connection: the request may have used one that the server was closing. */
  async function send(url: string, init: RequestParts): Promise<KeycloakAnswer> {
    const signal = AbortSignal.timeout(timeoutMs);
    return await inTurn('postern', async () => {
      if (circuit.isOpen()) throw new KeycloakTrouble('circuit_open');
      try {
        const answer = await sendOnce(url, init, signal).catch((error: unknown) => {
          if (signal.aborted || !brokenConnections.has(causeCode(error))) throw error;
          return sendOnce(url, init, signal);
        });
        if (answer.status >= 500 || answer.status === 429) circuit.failed();
        else circuit.succeeded();
        return answer;
      } catch (cause) {
        circuit.failed();
        throw new KeycloakTrouble(signal.aborted ? 'timeout' : causeCode(cause), { cause });
      }
    });
  }

  async function sendOnce(url: string, { method, headers, body }: RequestParts, signal: AbortSignal) {
    signal.throwIfAborted();
    const response = await deps.fetch(url, {
      method,
      headers: { accept: 'application/json', ...headers },
      signal,
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, body: parsed(await response.text()) };
  }

  const post = (path: string, client: ClientCredentials, form: Record<string, string>) =>
    send(`${issuer}${path}`, {
      method: 'POST',
      headers: {
        authorization: basic(client),
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams(form).toString(),
    });

  const tokenRequest = (more: Record<string, string> = {}) =>
    post('/protocol/openid-connect/token', principalSync, { grant_type: 'client_credentials', ...more });

  async function requestToken(): Promise<string> {
    const { status, body } = await tokenRequest();
    if (status === 400 || status === 401) throw new KeycloakTrouble('client_refused');
    if (status !== 200) throw new KeycloakTrouble(`token_status_${status}`);
    const value = isRecord(body) ? body['access_token'] : undefined;
    const seconds = isRecord(body) ? body['expires_in'] : undefined;
    if (typeof value !== 'string' || value === '' || typeof seconds !== 'number')
      throw new KeycloakTrouble('garbled_token');
    token = { value, goodUntil: clock.now() + Math.max(seconds * 1_000 - spareMs, (seconds * 1_000) / 2) };
    return value;
  }

  /** Concurrent callers share one token request. */
  function tokenToUse(): Promise<string> {
    if (token !== undefined && clock.now() < token.goodUntil) return Promise.resolve(token.value);
    asking ??= requestToken().finally(() => (asking = undefined));
    return asking;
  }

  const readWith = (path: string, value: string) =>
    send(`${admin}${path}`, { method: 'GET', headers: { authorization: `Bearer ${value}` } });

  return {
    async read(path) {
      const used = await tokenToUse();
      const answer = await readWith(path, used);
      if (answer.status !== 401) return answer;
      // Keycloak invalidated the token early, by a restart with new keys or a not-before of the realm.
      if (token?.value === used) token = undefined;
      return await readWith(path, await tokenToUse());
    },
    async introspect(value, hint) {
      const { status, body } = await post('/protocol/openid-connect/token/introspect', principalSync, {
        token: value,
        token_type_hint: hint,
      });
      if (status === 401 || status === 403) throw new KeycloakTrouble('client_refused');
      if (status !== 200) throw new KeycloakTrouble(`introspection_status_${status}`);
      if (!isRecord(body)) throw new KeycloakTrouble('garbled_introspection');
      return body;
    },
    introspectAs: (client, value) =>
      post('/protocol/openid-connect/token/introspect', client, { token: value }),
    async ownToken() {
      token = undefined;
      return await tokenToUse();
    },
    async ownTokenWith(scope) {
      const { status, body } = await tokenRequest({ scope });
      if (status === 400) return undefined;
      const value = isRecord(body) ? body['access_token'] : undefined;
      if (status !== 200 || typeof value !== 'string') throw new KeycloakTrouble(`token_status_${status}`);
      return value;
    },
    publicDocument: (path) => send(`${issuer}${path}`, { method: 'GET', headers: {} }),
  };
}

type RequestParts = {
  readonly method: 'GET' | 'POST';
  readonly headers: Record<string, string>;
  readonly body?: string;
};

/** https://host/auth/realms/name → https://host/auth/admin/realms/name */
function adminAddress(issuer: string): string {
  return issuer.replace(/\/realms\/([^/]+)$/, '/admin/realms/$1');
}

/** RFC 6749 section 2.3.1: both halves are form-encoded first. */
function basic({ id, secret }: ClientCredentials): string {
  const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1);
  return `Basic ${Buffer.from(`${encoded(id)}:${encoded(secret)}`).toString('base64')}`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The caller checks the body and rejects undefined.
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The unverified claims of a token; undefined when it is not a JWT. */
export function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    return decodeJwt(token);
  } catch {
    // Not a JWT: callers then treat it as not being a token of a realm.
    return undefined;
  }
}

const brokenConnections = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/** Node's fetch throws `fetch failed`, with the real error as its cause. */
function causeCode(error: unknown): string {
  for (let one = error; one instanceof Error; one = one.cause) {
    if ('code' in one && typeof one.code === 'string') return one.code;
  }
  return error instanceof Error ? error.name : 'unknown';
}
