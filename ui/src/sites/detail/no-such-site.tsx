import { Anchor, Button, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useIsAdministrator } from '../../api/queries.ts';
import shared from '../../shell/page.module.css';
import { TakeDown } from './take-down.tsx';

/** The same page for a missing site and for one that the user may not see. An administrator can take it down by its id. */
export function NoSuchSite({ id }: { id: string }) {
  const isAdministrator = useIsAdministrator();
  return (
    <div className={shared['stack']}>
      <title>No such site · Postern</title>
      <div>
        <Anchor component={Link} to="/sites" size="sm">
          ← Sites
        </Anchor>
        <Title order={1} size="h2" mt={4}>
          There is no such site
        </Title>
        <p className="quiet">It does not exist, or you may not see it. Postern does not say which.</p>
        <Button component={Link} to="/sites">
          Go to your sites
        </Button>
      </div>
      {isAdministrator && <TakeDown id={id} standing="unknown" />}
    </div>
  );
}
