import { createHash, randomBytes } from 'node:crypto';
import { contextFile, contextNamed, type Contexts, type Credential } from '../http/contexts.ts';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { openInBrowser } from '../print/browser.ts';
import { redirectReceiver } from './loopback.ts';
import { originOf } from '../http/origin.ts';
import type { Result } from '../print/output.ts';
import { credentialFrom } from '../http/session.ts';
import { isKey } from '../scan/find-keys.ts';
import { send } from '../http/send.ts';
import {
  ask,
  clientId,
  type Endpoints,
  endpointsOf,
  refused,
  type Tokens,
  tokensFrom,
} from '../http/tokens.ts';

const usualScopes = 'sites:write env:write repos:read';
const offline = 'offline_access';

type LoginOptions = {
  readonly device?: true;
  readonly tokenStdin?: true;
  readonly scope?: string;
  /** False: the sign-in ends with its first access token. */
  readonly offline?: boolean;
  /** False: a key is stored without asking the server. */
  readonly check?: boolean;
  readonly issuer?: string;
  readonly context?: string;
};

/** Signs in and makes the server the current context. @throws Failure */
export async function login(address: string | undefined, options: LoginOptions, io: Io): Promise<Result> {
  const { device, tokenStdin } = options;
  const scope = scopesOf(options);
  if (device && tokenStdin) throw wrongUsage('--device and --token-stdin cannot be combined.');
  if (device && scope.split(' ').includes('admin'))
    throw wrongUsage('The scope admin needs a browser on this machine.', 'Leave out --device.');
  const file = contextFile(io);
  const { name, origin } = serverFor(address, options.context, await file.read(), io);
  const issuer = options.issuer === undefined ? `${origin}/identity` : issuerOf(options.issuer);
  const credential = tokenStdin
    ? await keyFromStdin(origin, options, io)
    : await signedIn(issuer, { device, scope }, io);
  const replaced = await file.update(async ({ servers }) => ({
    contexts: { current: name, servers: { ...servers, [name]: { origin, credential } } },
    result: servers[name]?.credential,
  }));
  if (replaced?.kind === 'tokens') await revokeReplaced(replaced, io);
  return { data: { context: name, server: origin, credential: credential.kind } };
}

/** Adds offline access unless --no-offline is set; without it, the sign-in ends after minutes. */
function scopesOf({ scope = usualScopes, offline: isOffline = true }: LoginOptions): string {
  const scopes = scope.split(/\s+/).filter((one) => one !== '' && one !== offline);
  return [...scopes, ...(isOffline ? [offline] : [])].join(' ');
}

/** Reads a key and checks it, so that a wrong key never replaces a stored credential. @throws Failure of the code 4 */
async function keyFromStdin(origin: string, { check = true }: LoginOptions, io: Io): Promise<Credential> {
  const key = credentialFrom(await io.readInput(), '--token-stdin');
  if (!isKey(key))
    throw new Failure(
      'invalid_credential',
      4,
      'The text on stdin is not a key: its form or its checksum is wrong.',
      {
        hint: 'Copy the whole value, such as app_pat_ and 50 characters. Nothing was stored.',
      },
    );
  if (check) await send({ origin, credential: key }, { method: 'GET', path: '/auth/context?check=true' }, io);
  return { kind: 'key', key };
}

/** Ends the replaced sign-in. The new one stays valid when the server cannot do that. */
async function revokeReplaced(replaced: Tokens, { err }: Pick<Io, 'err'>): Promise<void> {
  try {
    await revoke(replaced);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    err(
      `Postern could not end the earlier sign-in: ${error.message} End it on the page Connected clients.\n`,
    );
  }
}

async function revoke({ issuer, refreshToken, accessToken }: Tokens): Promise<void> {
  const { revocation } = await endpointsOf(issuer);
  const { status, body } = await ask(revocation, { client_id: clientId, token: refreshToken ?? accessToken });
  if (status !== 200) throw refused(body);
}

function issuerOf(address: string): string {
  const url = URL.parse(address);
  if (url === null) throw wrongUsage('--issuer is not an address.');
  return originOf(url.origin, '--issuer') + url.pathname.replace(/\/$/, '');
}

/** The address that is given, POSTERN_URL, or that of the context. */
function serverFor(
  address: string | undefined,
  context: string | undefined,
  contexts: Contexts,
  io: Pick<Io, 'env'>,
): { name: string; origin: string } {
  const given = address ?? io.env['POSTERN_URL'];
  if (given !== undefined && given !== '') {
    const origin = originOf(given, address === undefined ? 'POSTERN_URL' : 'URL');
    return { name: context ?? nameOf(origin), origin };
  }
  const name = context ?? contexts.current;
  if (name === null)
    throw wrongUsage('No server is named.', 'Write: postern login https://postern.example.com');
  return { name, origin: contextNamed(contexts, name).origin };
}

/** `postern.example.com` of its address; with the port where it is not the usual one. */
export function nameOf(origin: string): string {
  return new URL(origin).host;
}

async function signedIn(
  issuer: string,
  { device, scope }: { readonly device: true | undefined; readonly scope: string },
  io: Io,
): Promise<Credential> {
  if (!io.canAsk)
    throw new Failure('authentication_required', 4, 'A sign-in needs a terminal, and there is none.', {
      hint: 'Set POSTERN_KEY, or POSTERN_KEY_FILE, or store a key: postern login --token-stdin',
    });
  const endpoints = await endpointsOf(issuer);
  const verifier = randomBytes(32).toString('base64url');
  const flow = {
    issuer,
    endpoints,
    scope,
    verifier,
    challenge: createHash('sha256').update(verifier).digest('base64url'),
  };
  return device ? await byDevice(flow, io) : await byRedirect(flow, io);
}

type Flow = {
  readonly issuer: string;
  readonly endpoints: Endpoints;
  readonly scope: string;
  readonly verifier: string;
  readonly challenge: string;
};

/** RFC 8252: the browser of this machine returns the code to a port of the loopback address. */
async function byRedirect(
  { issuer, endpoints, scope, verifier, challenge }: Flow,
  io: Io,
): Promise<Credential> {
  const state = randomBytes(16).toString('base64url');
  const receiver = await redirectReceiver(state);
  const address = new URL(endpoints.authorization);
  const query = {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: receiver.redirectUri,
    scope,
    // Without it the provider leaves out offline_access.
    prompt: 'consent',
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  io.err(`Sign in on this page:\n${address.href}\n`);
  if (io.canAsk) openInBrowser(address.href);
  const answer = await receiver.answer();
  const code = answer.get('code');
  if (code === null) throw refused(Object.fromEntries(answer));
  const from = answer.get('iss');
  if (from !== null && from !== issuer)
    throw new Failure('wrong_issuer', 4, 'Another issuer than the one that was asked has answered.');
  const reply = await ask(endpoints.token, {
    client_id: clientId,
    grant_type: 'authorization_code',
    code,
    redirect_uri: receiver.redirectUri,
    code_verifier: verifier,
  });
  return tokensFrom(reply, issuer, io.now());
}

/** RFC 8628: the person types a code into a browser elsewhere. */
async function byDevice(
  { issuer, endpoints, scope, verifier, challenge }: Flow,
  io: Io,
): Promise<Credential> {
  const { body } = await ask(endpoints.deviceAuthorization, {
    client_id: clientId,
    scope,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  const { device_code: deviceCode, user_code: userCode, verification_uri: page, interval } = body;
  if (typeof deviceCode !== 'string' || typeof userCode !== 'string' || typeof page !== 'string')
    throw refused(body);
  io.err(`Open ${page} and type the code ${userCode}\nIt asks for: ${scope}\n`);
  // RFC 8628 section 3.2: five seconds where the server names none.
  for (let seconds = Math.max(1, Number(interval ?? 5) || 5); ; ) {
    await io.wait(seconds * 1000);
    const reply = await ask(endpoints.token, {
      client_id: clientId,
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: deviceCode,
      code_verifier: verifier,
    });
    const { error } = reply.body;
    if (error === 'slow_down') seconds += 5;
    else if (error !== 'authorization_pending') return tokensFrom(reply, issuer, io.now());
  }
}

/** Ends the sign-in of a context, here and at the issuer. @throws Failure */
export async function logout(options: { readonly context?: string }, io: Io): Promise<Result> {
  return await contextFile(io).update(async (contexts) => {
    const name = options.context ?? contexts.current;
    if (name === null) throw wrongUsage('No context is signed in.');
    const context = contextNamed(contexts, name);
    const { credential } = context;
    if (credential?.kind === 'tokens') await revoke(credential);
    return {
      contexts: { ...contexts, servers: { ...contexts.servers, [name]: { ...context, credential: null } } },
      result: {
        data: { context: name, server: context.origin },
        ...(credential?.kind === 'key'
          ? { hint: 'The key stays valid: revoke it on the page Settings, Keys.' }
          : {}),
      },
    };
  });
}
