import { Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import type { Site } from '../site-words.ts';

type DialogProps = {
  readonly site: Site;
  readonly restoreDays: number;
  readonly isOpen: boolean;
  readonly onClose: () => void;
};

export function DeleteDialog({ site: { id, name }, restoreDays, isOpen, onClose }: DialogProps) {
  const params = { path: { id } };
  const restore = () => unwrap(api.POST('/sites/{id}/restore', { params }));
  return (
    <Modal opened={isOpen} onClose={onClose} title="Delete this site?">
      <Confirm
        act={() => unwrap(api.DELETE('/sites/{id}', { params }))}
        said={`${name} is deleted.`}
        undo={restoreDays > 0 ? { act: restore, said: `${name} is restored.` } : undefined}
        refresh={['sites']}
        confirm="Delete it"
        keep="Keep it"
        onClose={onClose}
      >
        <Text size="sm">
          <b>
            <bdi>{name}</bdi>
          </b>{' '}
          stops being served at once, everywhere.{' '}
          {restoreDays === 0
            ? 'It cannot be restored here.'
            : `For ${restoreDays} ${restoreDays === 1 ? 'day' : 'days'} you can restore it with all its versions, at the same address; then it is permanently removed.`}
        </Text>
      </Confirm>
    </Modal>
  );
}
