import { Alert, Group, Text } from '@mantine/core';
import { ApiProblem } from '../../api/client.ts';
import { PeopleIcon } from '../../app/icons.tsx';
import { Empty } from '../../lists/empty.tsx';
import common from '../admin.module.css';
import { TextLink } from '../text-link.tsx';

/** Whether another provider keeps the people of this installation, as the list of them answers. */
export function isKeptElsewhere(error: unknown): error is ApiProblem {
  return error instanceof ApiProblem && error.code === 'state_conflict';
}

/** Above what is known here of people: who keeps their accounts. */
export function KeepsAccounts({ of: { message, hint } }: { of: ApiProblem }) {
  return (
    <Alert color="blue" title="People are kept elsewhere" mb="lg">
      <Text size="sm" className={common['wrap']}>
        {message} {hint}
      </Text>
    </Alert>
  );
}

/** In place of a list that this installation does not keep: who does, and what can be seen of people here. */
export function KeptElsewhere({ error }: { error: ApiProblem }) {
  return (
    <Empty picture={<PeopleIcon size={28} />} title="People are kept elsewhere">
      <Text size="sm" className="quiet" ta="center" maw={520}>
        {error.message} {error.hint}
      </Text>
      <Group gap="lg">
        <TextLink to="/admin/users">Who is known here</TextLink>
        <TextLink to="/admin/user-keys">Keys of people</TextLink>
        <TextLink to="/admin/audit">What they did</TextLink>
      </Group>
    </Empty>
  );
}
