import Provider from 'oidc-provider';
import { second } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';

/**
 * How long after its first use a refresh token still answers its client with the same successor. Clients that make several
 * calls with an expired access token send the refresh token several times (decision 0077).
 */
export const reuseWindowMs = 30 * second;

/** The kind of record that keeps the value of a successor, under the hash of its predecessor. */
export const successorModel = 'RefreshSuccessor';

/** The form of the library's own tokens. */
export function newRefreshToken(random: Random): string {
  return Buffer.from(random.bytes(32)).toString('base64url');
}

/** The library names a new token itself, and passes no predecessor to its storage: the request connects the two. */
const chosen = new WeakMap<object, string>();

export function chooseSuccessor(value: string): void {
  const { ctx } = Provider;
  if (ctx === undefined) throw new Error('A refresh token is exchanged outside a request.');
  chosen.set(ctx, value);
}

/** Makes the provider give a new refresh token the value that was chosen when its predecessor was used. */
export function nameSuccessors(provider: Provider, random: Random): void {
  Object.defineProperty(provider.RefreshToken.prototype, 'generateTokenId', {
    value: () => (Provider.ctx && chosen.get(Provider.ctx)) ?? newRefreshToken(random),
  });
}
