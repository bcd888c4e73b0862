import { Badge } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';

type State = Schemas['KnownPersonAccount']['state'];

const looks = {
  active: ['Enabled', 'green'],
  disabled: ['Disabled', 'red'],
  missing: ['No longer exists', 'gray'],
} as const satisfies Record<State, readonly [words: string, color: string]>;

/** Whether an account may be used. */
export function AccountState({ of: state }: { of: State }) {
  const [words, color] = looks[state];
  return <Badge color={color}>{words}</Badge>;
}
