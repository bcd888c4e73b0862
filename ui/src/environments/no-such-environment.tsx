import { Anchor, Button, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';

/** The same page for what is missing and for what the person may not see. */
export function NoSuchEnvironment({ what }: { what: 'Environment' | 'deploy' }) {
  return (
    <div>
      <title>{`No such ${what} · Postern`}</title>
      <Anchor component={Link} to="/environments" size="sm">
        ← Environments
      </Anchor>
      <Title order={1} size="h2" mt={4}>
        There is no such {what}
      </Title>
      <p className="quiet">
        It does not exist, it was torn down more than 30 days ago, or you may not see it. Postern does not say
        which.
      </p>
      <Button component={Link} to="/environments">
        Go to your Environments
      </Button>
    </div>
  );
}
