import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useIsAdministrator } from '../api/queries.ts';
import { environmentPolicy } from '../shell/environment-policy.ts';

/** Describes the isolation. Users who are not administrators see it only while it is incomplete. */
export function IsolationNote({ mb = 0 }: { readonly mb?: 'md' | 0 }) {
  const isAdministrator = useIsAdministrator();
  const isolation = useQuery(environmentPolicy).data?.isolation;
  if (isolation === undefined) return null;
  if (isolation === null)
    return (
      <Alert color="yellow" mb={mb} title="No engine runs Environments">
        ENVIRONMENTS_ENGINE is off. Set it to local or kubernetes, and restart Postern.
      </Alert>
    );
  const { kind, isComplete, message } = isolation;
  if (isComplete && !isAdministrator) return null;
  const title = isComplete
    ? 'Isolation in force'
    : kind === 'process'
      ? 'No isolation is in force'
      : 'Isolation is incomplete';
  return (
    <Alert color={isComplete ? 'blue' : 'yellow'} mb={mb} title={title}>
      {message}
    </Alert>
  );
}
