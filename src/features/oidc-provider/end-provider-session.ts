import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import { cookieNames } from './cookies.ts';

/**
 * Detaches a browser from its provider session: the browser's cookie, and every copy of it, no longer finds the session.
 * The session itself continues under a new, unknown id, because online tokens end with it, and signing out of the web
 * app revokes no token (contract 3).
 */
export async function endProviderSession(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { cookies } = provider.createContext(request, response);
  const id = cookies.get(cookieNames.session, { signed: true });
  const session = id === undefined ? undefined : await provider.Session.find(id);
  if (session === undefined) return;
  session.resetIdentifier();
  await session.persist();
}
