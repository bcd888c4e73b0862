import { Button, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet } from '@tanstack/react-router';
import { whoAmI } from '../api/queries.ts';

/**
 * Wraps every administration page. The server enforces access; this component says so in one place, before ten requests
 * are refused. If roles cannot be read, the page itself reports why.
 */
export function AdminArea() {
  const { data: me, isPending } = useQuery(whoAmI);
  if (isPending) return <Skeleton height={240} radius="lg" role="status" aria-label="Loading" />;
  if (me !== undefined && me.roles?.includes('admin') === false)
    return <NotAllowed name={me.principal.name} />;
  return <Outlet />;
}

function NotAllowed({ name }: { name: string | null }) {
  return (
    <>
      <title>Not allowed · Postern</title>
      <Title order={1} size="h2">
        This is for administrators
      </Title>
      <p className="quiet">
        You are signed in as <bdi>{name ?? 'someone'}</bdi>, who does not have the role <b>admin</b>. Ask an
        administrator to do it for you, or to give you the role.
      </p>
      <Button component={Link} to="/settings/keys">
        Go to your keys
      </Button>
    </>
  );
}
