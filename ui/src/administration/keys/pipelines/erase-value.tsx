import { Alert, Text } from '@mantine/core';
import { api, unwrap } from '../../../api/client.ts';
import type { Key } from '../../../keys/key-words.ts';
import { Confirm } from '../../../shell/confirm.tsx';
import common from '../../admin.module.css';

type EraseProps = {
  readonly of: Key;
  readonly hasRules: boolean;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

/** Asks whether the key shall become federated. Everything that still uses its value stops. */
export function EraseValue({ of: key, hasRules, onClose, onDone }: EraseProps) {
  return (
    <Confirm
      act={() =>
        unwrap(
          api.PATCH('/tokens/{id}', { params: { path: { id: key.id } }, body: { credential: 'federated' } }),
        )
      }
      said={`The value of ${key.name} is erased.`}
      refresh={['admin', 'keys']}
      confirm="Erase it for ever"
      keep="Keep the value"
      onClose={onClose}
      onDone={onDone}
    >
      <div className={common['stack']}>
        <Text size="sm">
          The value of{' '}
          <b className="wrap">
            <bdi>{key.name}</bdi>
          </b>{' '}
          is erased <b>for ever</b>. Within a second, every request with it is refused, and nothing brings it
          back. The key becomes federated. It keeps its id, its rules and its sites, and can no longer be
          replaced.
        </Text>
        {!hasRules && (
          <Alert color="yellow" title="No pipeline can use this key yet">
            It has no trust rule. Add one first, and let a job use it.
          </Alert>
        )}
      </div>
    </Confirm>
  );
}
