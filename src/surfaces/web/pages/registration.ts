import type { FastifyInstance } from 'fastify';
import { AppError } from '../../../core/errors.ts';
import type { OidcProvider } from '../../../features/oidc-provider/oidc-provider.ts';
import type { People } from '../../../features/people/people.ts';

const maxBytes = 8_192;

/** `POST /identity/reg`: an MCP client registers itself (RFC 7591). Answers 404 unless the MCP policy opens it. */
export function registrationPage({
  identity,
  isOpen,
}: {
  readonly identity: Pick<OidcProvider, 'register'> & Pick<People, 'limitSignIn'>;
  readonly isOpen: () => Promise<boolean>;
}): (scope: FastifyInstance) => void {
  return (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.post(
      '/identity/reg',
      { config: { access: { callers: 'anyone', identity: 'none' } }, bodyLimit: maxBytes },
      async (request, reply) => {
        if (!(await isOpen())) throw new AppError('not_found');
        // It stores a row, as the start of a sign-in does.
        identity.limitSignIn('authorization', request.ip);
        const found = await identity.register(jsonIn(request.body));
        if (found === null)
          throw new AppError('rate_limited', {
            message: 'Too many clients have registered and wait for a person to allow them.',
            retryAfterSeconds: 600,
          });
        return reply.code('error' in found ? 400 : 201).send(found);
      },
    );
  };
}

function jsonIn(body: unknown): unknown {
  try {
    return JSON.parse(String(body));
  } catch {
    // No JSON is no object either, which the registration refuses.
    return undefined;
  }
}
