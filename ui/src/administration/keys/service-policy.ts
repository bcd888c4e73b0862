import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '../../api/client.ts';
import type { Policy } from '../../keys/new/draft.ts';

/** What the key policy says of service keys, in the shape in which it tells everyone of their own. */
export const servicePolicy = queryOptions({
  queryKey: ['admin', 'keys', 'policy'],
  staleTime: 0,
  queryFn: async ({ signal }) => {
    const [{ data }, mine] = await Promise.all([
      unwrap(api.GET('/config/api-keys', { signal })),
      unwrap(api.GET('/me/tokens/policy', { signal })),
    ]);
    const { issuance, scopes, lifetime, repositories } = data.policy;
    const policy: Policy = {
      ...mine.data,
      canCreate: issuance.service,
      reasons: [],
      allowedScopes: scopes.service,
      lifetime: lifetime.service,
      repositories: { allowAll: repositories.service.allowAll, maxSelected: repositories.maxSelected },
    };
    return { ...policy, clockOffsetMs: Date.parse(mine.data.serverTime) - Date.now() };
  },
});
