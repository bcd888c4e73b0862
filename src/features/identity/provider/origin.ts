import Provider from 'oidc-provider';
import type { RequestOrigin } from '../../../core/caller.ts';

/** Where the request came from that the provider is answering now; its storage is not told otherwise. */
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
