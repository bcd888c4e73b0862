import { Button, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { whoAmI } from '../api/queries.ts';
import { Empty } from '../lists/empty.tsx';
import { PageHead } from '../lists/page-head.tsx';
import { PersonIcon } from './icons.tsx';

/** True if the server says that this person has no role. If it cannot say, the pages show their own errors. */
export function useLacksAccess(): boolean {
  const { data: me } = useQuery(whoAmI);
  return me?.authMethod === 'session' && me.roles?.length === 0;
}

/** Replaces every page for a person without access to Postern: says what is missing, and whom to ask. */
export function NoAccess() {
  const { data: me, isFetching, refetch } = useQuery(whoAmI);
  return (
    <>
      <PageHead title="No access" intro="You are signed in, but you can’t use Postern yet." />
      <Empty
        picture={<PersonIcon size={28} />}
        title="Ask an administrator for access"
        steps={[
          {
            do: 'Ask an administrator of Postern for the role user.',
            why: `Your account${me?.principal.name ? `, ${me.principal.name},` : ''} does not have it, directly or from a group.`,
          },
          {
            do: 'Check again.',
            why: 'You can use Postern as soon as you have the role; you don’t need to sign in again.',
          },
        ]}
      >
        <p className="quiet">
          Your keys are suspended while you don’t have the role, and work again afterwards. Your sites are
          kept.
        </p>
        <Group>
          <Button loading={isFetching} onClick={() => void refetch()}>
            Check again
          </Button>
          <form method="post" action="/auth/logout">
            <Button type="submit" variant="default">
              Sign out
            </Button>
          </form>
        </Group>
      </Empty>
    </>
  );
}
