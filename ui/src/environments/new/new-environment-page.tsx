import { Anchor, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { environmentPolicy } from '../../shell/environment-policy.ts';
import { Problem } from '../../shell/problem.tsx';
import { IsolationNote } from '../isolation-note.tsx';
import { EnvironmentsOff } from '../environments-off.tsx';
import { NewEnvironment } from './new-environment.tsx';
import form from '../../shell/form.module.css';

const route = getRouteApi('/environments/new');

export function NewEnvironmentPage() {
  const from = route.useSearch();
  const { data, error, refetch } = useQuery(environmentPolicy);
  if (data?.enabled === false) return <EnvironmentsOff />;
  return (
    <div className={form['page']}>
      <title>New Environment · Postern</title>
      <div>
        <Anchor component={Link} to="/environments" size="sm">
          ← Environments
        </Anchor>
        <Title order={1} size="h2" mt={4}>
          New Environment
        </Title>
      </div>
      <IsolationNote />
      {data === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />
      )}
      {data !== undefined && <NewEnvironment policy={data} from={from} />}
    </div>
  );
}
