import { Alert, Anchor, Skeleton, Title } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { api, dataOf, unwrap } from '../../api/client.ts';
import { queryClient } from '../../api/queries.ts';
import { Problem } from '../../shell/problem.tsx';
import { NewKeyForm } from '../../keys/new/new-key-form.tsx';
import styles from '../../keys/new/new-key.module.css';
import type { Policy } from '../../keys/new/draft.ts';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';

const route = getRouteApi('/administration/admin/service-keys/new');

/** The key policy for service keys, in the shape that the form for personal keys reads. */
const servicePolicy = queryOptions({
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
    const clockOffsetMs = Date.parse(mine.data.serverTime) - Date.now();
    return { policy: { ...policy, clockOffsetMs }, issuers: data.policy.federation.issuers };
  },
});

/** The form for personal keys, with the part of the policy for service keys. */
export function NewServiceKeyPage() {
  const prefill = route.useSearch();
  const navigate = useNavigate();
  const { data, error, refetch } = useQuery(servicePolicy);
  const policy = data?.policy;
  const refreshed = () => queryClient.invalidateQueries({ queryKey: ['admin', 'keys'] });

  async function finish(): Promise<void> {
    await refreshed();
    await navigate({ to: '/admin/service-keys', ignoreBlocker: true });
  }

  async function showKey(id: string): Promise<void> {
    await refreshed();
    await navigate({ to: '/admin/service-keys/$id', params: { id } });
  }

  return (
    <div className={styles['page']}>
      <title>New service key · Postern</title>
      <Anchor component={Link} to="/admin/service-keys" size="sm">
        ← Service keys
      </Anchor>
      <Title order={1} size="h2" mt={4} mb="md">
        New service key
      </Title>
      {policy === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {policy === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />
      )}
      {policy?.canCreate === false && (
        <Alert color="yellow" title="Creating service keys is switched off" mb="md">
          The key policy does not allow new service keys.{' '}
          <Anchor component={Link} to="/admin/access-controls" inherit underline="always">
            Access controls
          </Anchor>
        </Alert>
      )}
      {data !== undefined && (
        <FreshSignIn>
          <NewKeyForm
            policy={data.policy}
            prefill={prefill}
            forService={{ issuers: data.issuers, onFederated: showKey }}
            onCreate={(body) => dataOf(api.POST('/tokens', { body }))}
            onStored={finish}
          />
        </FreshSignIn>
      )}
    </div>
  );
}
