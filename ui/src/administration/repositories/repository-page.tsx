import { Button, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/contract.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import common from '../admin.module.css';
import { oneRepository } from '../queries.ts';
import { TextLink } from '../text-link.tsx';
import { ConfigurationFile } from './configuration-file.tsx';
import { GitCredential } from './git-credential.tsx';
import { GitWebhook } from './git-webhook.tsx';

const route = getRouteApi('/administration/admin/repositories/$owner/$name');

/** One repository: its address, how Postern reads it, and whether its postern.yaml is valid. */
export function RepositoryPage() {
  const { data: repository, error, refetch } = useQuery(oneRepository(route.useParams()));
  return (
    <>
      <TextLink to="/admin/repositories" size="sm">
        ← Repositories
      </TextLink>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {repository === undefined && error === null && (
        <Skeleton height={320} radius="lg" role="status" aria-label="Loading" />
      )}
      {repository !== undefined && <Registered repository={repository} />}
    </>
  );
}

function Registered({ repository }: { repository: Schemas['Repository'] }) {
  const now = useNow();
  return (
    <>
      <PageHead title={repository.fullName} intro="A registered git repository." />
      <section className={common['card']} aria-label="The repository">
        <dl className={common['facts']}>
          <dt>Clone URL</dt>
          <dd>
            <code>{repository.cloneUrl}</code>
          </dd>
          <dt>Default branch</dt>
          <dd>
            <code>{repository.defaultBranch}</code>
          </dd>
          <dt>Registered</dt>
          <dd>
            <Moment at={repository.createdAt} now={now} />
          </dd>
        </dl>
      </section>
      <GitCredential of={repository} />
      <GitWebhook of={repository} />
      <ConfigurationFile of={repository} />
      <Environments of={repository} />
    </>
  );
}

function Environments({ of: { fullName: repository } }: { of: Schemas['Repository'] }) {
  return (
    <section className={common['card']} aria-labelledby="environments">
      <div className={common['head']}>
        <h2 id="environments">Environments</h2>
      </div>
      <Text size="sm" mb="sm">
        Branches of this repository, built and running at their own URLs.
      </Text>
      <div className={common['buttons']}>
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/environments" search={{ whose: 'all', repository }} {...props} />}
        >
          Its Environments
        </Button>
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/environments/new" search={{ repository }} {...props} />}
        >
          Create an Environment
        </Button>
      </div>
    </section>
  );
}
