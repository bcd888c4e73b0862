import { Alert, Group, Text } from '@mantine/core';
import { ApiProblem } from '../../api/client.ts';
import { PeopleIcon } from '../../shell/icons.tsx';
import { Empty } from '../../lists/empty.tsx';
import { TextLink } from '../text-link.tsx';

/** True if another provider manages the accounts, as the answer of the list says. */
export function isManagedExternally(error: unknown): error is ApiProblem {
  return error instanceof ApiProblem && error.code === 'state_conflict';
}

/** Shown above known people: says who manages their accounts. */
export function ManagesAccounts({ of: { message, hint } }: { of: ApiProblem }) {
  return (
    <Alert color="blue" title="Accounts are managed elsewhere" mb="lg">
      <Text size="sm" className="wrap">
        {message} {hint}
      </Text>
    </Alert>
  );
}

/** Replaces a list that another provider manages: names the provider, and links to what Postern knows. */
export function ExternalAccounts({ error }: { error: ApiProblem }) {
  return (
    <Empty picture={<PeopleIcon size={28} />} title="Accounts are managed elsewhere">
      <Text size="sm" className="quiet" ta="center" maw={520}>
        {error.message} {error.hint}
      </Text>
      <Group gap="lg">
        <TextLink to="/admin/users">Known users</TextLink>
        <TextLink to="/admin/user-keys">User keys</TextLink>
        <TextLink to="/admin/audit">Audit log</TextLink>
      </Group>
    </Empty>
  );
}
