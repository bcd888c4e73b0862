import { createReadStream } from 'node:fs';
import { text } from 'node:stream/consumers';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { isProtected } from './origin.ts';
import { sendForm, unreachable } from './send.ts';

type Platform = Pick<Io, 'env' | 'err' | 'wait' | 'now'>;

/** How long before its end a token is exchanged again, so that it does not end during a request. */
const earlyMs = 60_000;
/** The server refuses longer ID tokens. */
const maxTokenCharacters = 16_384;
/** More than a response with an ID token needs. */
const maxAnswerBytes = 65_536;
const timeoutMs = 30_000;

const urn = 'urn:ietf:params:oauth';

type Exchanged = { readonly token: string; readonly usedUntil: number };

/**
 * The credential of a pipeline that stores no secret: the ID token of its platform is exchanged for a token of a service key
 * (docs/reference/contract.md#4-keys), and again before that token ends. Neither of them reaches the disk or an output.
 * Returns the function that each request asks for its token. Undefined: POSTERN_KEY_ID names no key. @throws Failure
 */
export function exchangedToken(origin: string, platform: Platform): (() => Promise<string>) | undefined {
  const keyId = platform.env['POSTERN_KEY_ID'];
  if (!keyId) return undefined;
  if (!/^[0-9A-Za-z]{12}$/.test(keyId))
    throw wrongUsage(
      'POSTERN_KEY_ID is not the id of a key.',
      'The id has 12 letters and digits: see its page.',
    );
  let held: Exchanged | undefined;
  let running: Promise<Exchanged> | undefined;
  return async () => {
    if (held !== undefined && platform.now() < held.usedUntil) return held.token;
    // Requests at the same time share one exchange: many ID tokens are good for one only.
    running ??= exchange(origin, keyId, platform).finally(() => (running = undefined));
    held = await running;
    return held.token;
  };
}

async function exchange(origin: string, keyId: string, platform: Platform): Promise<Exchanged> {
  const form = {
    grant_type: `${urn}:grant-type:token-exchange`,
    subject_token: await idTokenFor(origin, platform.env),
    subject_token_type: `${urn}:token-type:id_token`,
    audience: keyId,
  };
  const sentAt = platform.now();
  const answer = await sendForm(origin, '/auth/exchange', form, platform).catch((error: unknown) => {
    throw refusalFor(origin, keyId, error);
  });
  const { access_token: token, expires_in: seconds } = answer;
  if (typeof token !== 'string' || typeof seconds !== 'number')
    throw new Failure('no_token', 1, 'The server accepted the ID token and returned no token.');
  const lifetimeMs = seconds * 1000;
  // A rule may allow only a minute, which would otherwise be over at once.
  return { token, usedUntil: sentAt + lifetimeMs - Math.min(earlyMs, lifetimeMs / 2) };
}

/** The response never says why; the request id leads an administrator to the reason. */
function refusalFor(origin: string, keyId: string, error: unknown): unknown {
  if (!(error instanceof Failure) || error.code !== 'invalid_grant') return error;
  const { code, exitCode, requestId } = error;
  return new Failure(code, exitCode, `The ID token of this job was not accepted for the key ${keyId}.`, {
    hint: `Only an administrator can read the reason: ${origin}/settings/refusals?requestId=${encodeURIComponent(requestId ?? '')}`,
    requestId,
  });
}

/** The ID token in a variable or file of the job; without one, that of the runner of GitHub. @throws Failure */
async function idTokenFor(origin: string, env: Io['env']): Promise<string> {
  const { POSTERN_ID_TOKEN: token, POSTERN_ID_TOKEN_FILE: file } = env;
  const { ACTIONS_ID_TOKEN_REQUEST_URL: address, ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret } = env;
  if (token && file)
    throw wrongUsage(
      'POSTERN_ID_TOKEN and POSTERN_ID_TOKEN_FILE both give an ID token.',
      'Give one of them.',
    );
  if (token) return asIdToken(token, 'POSTERN_ID_TOKEN', origin);
  if (file) return asIdToken(await startOf(file), 'The file of POSTERN_ID_TOKEN_FILE', origin);
  if (address && secret) return await askGithub(address, secret, origin);
  throw new Failure('no_id_token', 4, 'POSTERN_KEY_ID is set, and this job has no ID token.', {
    hint: hintFor(origin, env),
  });
}

function hintFor(origin: string, env: Io['env']): string {
  if (env['GITHUB_ACTIONS'] === 'true')
    return 'Add to the job: permissions: { contents: read, id-token: write }. A pull request from a fork gets no ID token.';
  if (env['GITLAB_CI'] === 'true')
    return `Add to the job: id_tokens: { POSTERN_ID_TOKEN: { aud: "${origin}" } }`;
  return 'Set POSTERN_ID_TOKEN or POSTERN_ID_TOKEN_FILE.';
}

/**
 * An ID token for this server alone. Another one could be used by the server that it is sent to: who sets POSTERN_URL of a job
 * often does not set the audience of its ID token. @throws Failure that does not contain the text
 */
function asIdToken(given: string, source: string, origin: string): string {
  const token = given.trim();
  if (token.length > maxTokenCharacters || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    throw new Failure('no_id_token', 4, `${source} holds no ID token.`, {
      hint: `An ID token is a signed JWT of at most ${maxTokenCharacters} characters.`,
    });
  const audience = audienceIn(token);
  if (audience !== origin)
    throw new Failure('no_id_token', 4, `${source} holds an ID token for another server than ${origin}.`, {
      hint:
        audience === undefined
          ? `Let the platform sign one whose only audience (aud) is ${origin}.`
          : `Its audience (aud) is ${JSON.stringify(audience.slice(0, 200))}. Correct that, or POSTERN_URL.`,
    });
  return token;
}

/** The only audience of an ID token. Undefined: it has none, or several. */
function audienceIn(token: string): string | undefined {
  try {
    const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
    const { aud } = Object(JSON.parse(claims));
    const only: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
    return typeof only === 'string' ? only : undefined;
  } catch {
    return undefined;
  }
}

/** Reads little more than an ID token may have. Kubernetes renews the token in the file, so each exchange reads it. */
async function startOf(file: string): Promise<string> {
  try {
    return await text(createReadStream(file, { end: maxTokenCharacters + 1 }));
  } catch {
    throw wrongUsage('The file that POSTERN_ID_TOKEN_FILE names cannot be read.');
  }
}

/** GitHub Actions: the runner gives a job an address and a token for it, where `permissions` allow that. */
async function askGithub(address: string, secret: string, audience: string): Promise<string> {
  const url = URL.parse(address);
  if (url === null || !isProtected(url))
    throw wrongUsage('ACTIONS_ID_TOKEN_REQUEST_URL is not an https address.');
  // Otherwise the message of fetch would contain the value.
  if (!/^[\x21-\x7e]+$/.test(secret)) throw wrongUsage('ACTIONS_ID_TOKEN_REQUEST_TOKEN holds no token.');
  url.searchParams.set('audience', audience);
  const { status, body } = await getBounded(url, secret);
  if (status !== 200)
    throw new Failure(
      'no_id_token',
      status >= 500 || status === 429 ? 7 : 4,
      `GitHub answered ${status} instead of an ID token.`,
    );
  return asIdToken(valueIn(body), 'The answer of GitHub', audience);
}

async function getBounded(url: URL, secret: string): Promise<{ status: number; body: string }> {
  try {
    const response = await fetch(url, {
      // A redirect could lead the token of the runner to another server.
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
      headers: { authorization: `Bearer ${secret}`, accept: 'application/json' },
    });
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of response.body ?? []) {
      size += part.length;
      // Leaving the loop closes the connection.
      if (size > maxAnswerBytes) return { status: response.status, body: '' };
      parts.push(part);
    }
    return { status: response.status, body: Buffer.concat(parts).toString() };
  } catch (error) {
    throw unreachable(url.origin, error);
  }
}

function valueIn(body: string): string {
  try {
    const { value } = Object(JSON.parse(body));
    return typeof value === 'string' ? value : '';
  } catch {
    return '';
  }
}
