import type { FastifyRequest } from 'fastify';
import type { Sessions } from '../../../features/people/sessions/sessions.ts';
import { findCredential } from '../credential.ts';

/** Whether the browser has a session that is still active. */
export async function isSignedIn(
  request: FastifyRequest,
  sessions: Pick<Sessions, 'authenticate'>,
): Promise<boolean> {
  const credential = findCredential(request.raw);
  return credential.kind === 'session' && (await sessions.authenticate(credential.value)).kind === 'active';
}
