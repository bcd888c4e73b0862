import { Alert, Anchor } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { repositoriesNamed, useIsAdministrator } from '../../api/queries.ts';

/** Says what to do while no repository is registered. Administrators can register one. */
export function NoRepository() {
  const isAdministrator = useIsAdministrator();
  const { data } = useQuery(repositoriesNamed(''));
  if (data?.data.length !== 0) return null;
  return (
    <Alert color="yellow" title="No repository is registered">
      An Environment runs a branch of a registered repository.{' '}
      {isAdministrator ? (
        <Anchor inherit renderRoot={(props) => <Link to="/admin/repositories" {...props} />}>
          Register a repository
        </Anchor>
      ) : (
        'Ask an administrator to register yours.'
      )}
    </Alert>
  );
}
