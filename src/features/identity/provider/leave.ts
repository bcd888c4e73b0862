import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import { cookieNames } from './cookies.ts';

/**
 * Ends a browser's hold on its provider session: the cookie it has, and every copy of it, finds nothing any more. The
 * session lives on under an id nobody knows, because online tokens end with it, and signing out of the web app
 * revokes no token (contract 3).
 */
export async function leaveProvider(
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
