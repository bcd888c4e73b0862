import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { environmentPolicy } from '../shell/environment-policy.ts';

/** What isolates the code of repositories here, and what it does not stop. */
export function IsolationNote({ mb = 0 }: { readonly mb?: 'md' | 0 }) {
  const isolation = useQuery(environmentPolicy).data?.isolation;
  if (isolation === undefined) return null;
  if (isolation === null)
    return (
      <Alert color="yellow" mb={mb} title="No engine runs Environments">
        ENVIRONMENTS_ENGINE is off. Set it to local or kubernetes, and restart Postern.
      </Alert>
    );
  const isNone = isolation.kind === 'process';
  return (
    <Alert
      color={isNone ? 'yellow' : 'blue'}
      mb={mb}
      title={isNone ? 'No isolation is in force' : 'Isolation in force'}
    >
      {isolation.message}
    </Alert>
  );
}
