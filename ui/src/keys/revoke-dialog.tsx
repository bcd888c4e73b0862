import { Button, Group, Modal, Text } from '@mantine/core';
import { api, unwrap } from '../api/client.ts';
import { Problem } from '../shell/problem.tsx';
import { fromNow } from '../shell/time.ts';
import { useEnding } from '../shell/use-ending.ts';
import type { Key } from './key-words.ts';

type RevokeProps = {
  /** Undefined: the dialog is closed. */
  revoking: Key | undefined;
  now: number;
  onClose: () => void;
  onRevoked: () => void;
};

/** Says what will stop working. The user need not type anything: a leaked key must be revoked at once. */
export function RevokeDialog({ revoking, now, onClose, onRevoked }: RevokeProps) {
  return (
    <Modal
      opened={revoking !== undefined}
      onClose={onClose}
      title="Revoke this key?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {revoking !== undefined && (
        <Question key={revoking.id} of={revoking} now={now} onClose={onClose} onRevoked={onRevoked} />
      )}
    </Modal>
  );
}

function Question({ of: key, now, onClose, onRevoked }: Omit<RevokeProps, 'revoking'> & { of: Key }) {
  const { run, error, isBusy } = useEnding({
    end: () => unwrap(api.DELETE('/me/tokens/{id}', { params: { path: { id: key.id } } })),
    said: `${key.name} is revoked.`,
    list: 'keys',
    onClose,
    onDone: onRevoked,
  });
  const usedAt = key.lastUsedAt === null ? null : Date.parse(key.lastUsedAt);

  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <Text size="sm" mb="sm">
        <b>
          <bdi>{key.name}</bdi>
        </b>{' '}
        <code className="quiet">{key.id}</code>
      </Text>
      <Text size="sm" mb="sm">
        Scripts that use it are refused immediately, everywhere. This cannot be undone: they will need a new
        key. {key.scopes.includes('sites:write') && 'Sites it published stay yours. '}
        {usedAt === null ? 'It was never used.' : `It was last used ${fromNow(usedAt, now)}.`}
      </Text>
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Keep it
        </Button>
        <Button type="submit" color="red" loading={isBusy}>
          Revoke for good
        </Button>
      </Group>
    </form>
  );
}
