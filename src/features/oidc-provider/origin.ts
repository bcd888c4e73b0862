import Provider from 'oidc-provider';
import type { RequestOrigin } from '../../core/caller.ts';

/** The origin of the request that the provider is handling now. The library does not pass it to its storage adapter. */
export function originOfRequest(): RequestOrigin {
  const { ctx } = Provider;
  if (ctx === undefined) return { requestId: null, address: null, agent: null };
  const requestId = ctx.response.get('x-request-id');
  return {
    requestId: typeof requestId === 'string' && requestId !== '' ? requestId : null,
    address: ctx.ip,
    agent: ctx.get('user-agent').slice(0, 200) || null,
  };
}
