import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { StackIcon } from '../../shell/icons.tsx';

const steps = [
  {
    do: 'Choose a repository and a branch.',
    why: 'The postern.yaml in its root says which services it has and how they are built.',
  },
  {
    do: 'Watch the build.',
    why: 'Each service gets its own URL. Parts that did not change since an earlier deploy are reused.',
  },
  { do: 'Share its URL.', why: 'It is torn down when its lease ends, unless you extend the lease.' },
];

/** Explains Environments while there are none. */
export function FirstEnvironment() {
  return (
    <Empty picture={<StackIcon size={28} />} title="No Environments yet" steps={steps}>
      <Button component={Link} to="/environments/new">
        Create an Environment
      </Button>
    </Empty>
  );
}

export function NoEnvironmentMatches({ search, onClear }: { search: string; onClear: () => void }) {
  return (
    <NoMatch clear="Show my Environments" onClear={onClear}>
      No Environment matches these filters
      {search !== '' && (
        <>
          , with “<bdi>{search}</bdi>” in its name or branch
        </>
      )}
      .
    </NoMatch>
  );
}
