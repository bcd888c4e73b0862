import type { Fetch } from '../../platform/fetch.ts';
import { type SigningKey, signingKeySchema } from '../keys/keys.ts';

/** What an issuer publishes about itself. Enough for a hundred keys with their certificates. */
const maxBytes = 262_144;
const maxKeys = 100;

/** Why an issuer has no usable keys; completes the sentence "The issuer …". */
class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable';
}

/**
 * Reads the public keys of an issuer: its discovery document (OpenID Connect Discovery section 4) names their address.
 * Follows no redirect. `fetch` is a guarded one; each of the two requests may take `timeoutMs`.
 */
export async function fetchSigningKeys(
  { fetch, timeoutMs }: { readonly fetch: Fetch; readonly timeoutMs: number },
  issuer: string,
): Promise<SigningKey[]> {
  const discovery = await readJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  // Otherwise a server that serves any document at this host could name the keys of this issuer (section 4.3).
  if (discovery['issuer'] !== issuer)
    throw new KeysUnavailable('names another issuer in its discovery document');
  const address = addressIn(discovery['jwks_uri']);
  if (address === undefined) throw new KeysUnavailable('names no https address of its keys');
  const { keys } = await readJson(address);
  if (!Array.isArray(keys)) throw new KeysUnavailable('answers no list of keys');
  return usableIn(keys);

  async function readJson(url: string): Promise<Readonly<Record<string, unknown>>> {
    const answer = await fetch(url, {
      method: 'GET',
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (answer.status !== 200) {
      await answer.body?.cancel();
      throw new KeysUnavailable(`answered with the status ${answer.status}`);
    }
    const value: unknown = JSON.parse(await boundedText(answer));
    if (typeof value !== 'object' || value === null) throw new KeysUnavailable('answered no JSON object');
    return value as Readonly<Record<string, unknown>>;
  }
}

/** Keys of other types and for other purposes are left out, and so is a second one with the same id. */
function usableIn(keys: readonly unknown[]): SigningKey[] {
  const found = new Map<string, SigningKey>();
  for (const one of keys.slice(0, maxKeys)) {
    const { success, data } = signingKeySchema.safeParse(one);
    if (!success || found.has(data.kid)) continue;
    const { kty, kid, use, alg, crv, n, e, x, y } = data;
    found.set(kid, { kty, kid, use, alg, crv, n, e, x, y });
  }
  if (found.size === 0) throw new KeysUnavailable('publishes no key that Postern can use');
  return [...found.values()];
}

function addressIn(value: unknown): string | undefined {
  const url = typeof value === 'string' && value.length <= 500 ? URL.parse(value) : null;
  return url?.protocol === 'https:' && url.username === '' && url.password === '' ? url.href : undefined;
}

async function boundedText({ body }: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  // A body of the guarded fetch is a stream of bytes, and breaking off cancels it.
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) throw new KeysUnavailable(`answered with more than ${maxBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}
