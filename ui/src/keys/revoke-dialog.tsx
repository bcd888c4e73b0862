import { Modal, Text } from '@mantine/core';
import { api, unwrap } from '../api/client.ts';
import { Confirm } from '../shell/confirm.tsx';
import { fromNow } from '../shell/time.ts';
import type { Key } from './key-words.ts';

type RevokeProps = {
  /** Undefined: the dialog is closed. */
  revoking: Key | undefined;
  now: number;
  onClose: () => void;
  onRevoked: () => void;
};

/** Says what will stop working. The user need not type anything: a leaked key must be revoked at once. */
export function RevokeDialog({ revoking: key, now, onClose, onRevoked }: RevokeProps) {
  return (
    <Modal opened={key !== undefined} onClose={onClose} title="Revoke this key?">
      {key !== undefined && (
        <Confirm
          act={() => unwrap(api.DELETE('/me/tokens/{id}', { params: { path: { id: key.id } } }))}
          said={`${key.name} is revoked.`}
          refresh={['keys']}
          confirm="Revoke for good"
          keep="Keep it"
          onClose={onClose}
          onDone={onRevoked}
        >
          <Text size="sm" mb="sm">
            <b>
              <bdi>{key.name}</bdi>
            </b>{' '}
            <code className="quiet">{key.id}</code>
          </Text>
          <Text size="sm" mb="sm">
            Scripts that use it are refused immediately, everywhere. This cannot be undone: they will need a
            new key. {key.scopes.includes('sites:write') && 'Sites it published stay yours. '}
            {key.lastUsedAt === null
              ? 'It was never used.'
              : `It was last used ${fromNow(Date.parse(key.lastUsedAt), now)}.`}
          </Text>
        </Confirm>
      )}
    </Modal>
  );
}
