import { Alert, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useIsAdministrator } from '../api/queries.ts';
import { Empty } from '../lists/empty.tsx';
import { PageHead } from '../lists/page-head.tsx';
import { environmentPolicy } from '../shell/environment-policy.ts';
import { StackIcon } from '../shell/icons.tsx';

const engineStep = {
  do: 'An operator sets ENVIRONMENTS_ENGINE and restarts Postern.',
  why: 'Without an engine nothing can build or run.',
};
const switchStep = {
  do: 'An administrator switches Environments on.',
  why: 'The switch is in the Environment policy, with lifetimes, quotas and who may open one.',
};

/** In place of the list and the form while Environments are switched off: what they are, and what an administrator does. */
export function EnvironmentsOff() {
  const isAdministrator = useIsAdministrator();
  const isolation = useQuery(environmentPolicy).data?.isolation ?? null;
  const steps = isolation === null ? [engineStep, switchStep] : [switchStep];
  return (
    <>
      <PageHead
        title="Environments"
        intro="A branch of a repository, built and running at its own URLs until its lease ends."
      />
      <Empty picture={<StackIcon size={28} />} title="Environments are switched off" steps={steps}>
        {isAdministrator ? (
          <Button component={Link} to="/admin/environments">
            Go to the Environment policy
          </Button>
        ) : (
          <p className="quiet">Ask an administrator to switch them on.</p>
        )}
      </Empty>
    </>
  );
}

/** Above Environments that exist while they are switched off. */
export function OffNote() {
  return (
    <Alert color="yellow" mb="md" title="Environments are switched off">
      An administrator switched them off in the Environment policy. Nothing is served or deployed until they
      are switched on again. You can still tear one down.
    </Alert>
  );
}
