import { Button, Group, Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { useEnding } from '../../shell/use-ending.ts';
import type { Site } from '../site-words.ts';

type DialogProps = {
  readonly site: Site;
  readonly restoreDays: number;
  readonly isOpen: boolean;
  readonly onClose: () => void;
};

export function DeleteDialog({ isOpen, ...rest }: DialogProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={rest.onClose}
      title="Delete this site?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Question {...rest} />
    </Modal>
  );
}

function Question({ site, restoreDays, onClose }: Omit<DialogProps, 'isOpen'>) {
  const { run, error, isBusy } = useEnding({
    end: () => unwrap(api.DELETE('/sites/{id}', { params: { path: { id: site.id } } })),
    said: `${site.name} is deleted.`,
    ...(restoreDays > 0 && {
      undo: {
        act: () => unwrap(api.POST('/sites/{id}/restore', { params: { path: { id: site.id } } })),
        said: `${site.name} is restored.`,
      },
    }),
    list: 'sites',
    onClose,
    onDone: () => undefined,
  });
  return (
    <>
      <Text size="sm">
        <b>
          <bdi>{site.name}</bdi>
        </b>{' '}
        stops being served at once, everywhere.{' '}
        {restoreDays === 0
          ? 'It cannot be restored here.'
          : `For ${restoreDays} ${restoreDays === 1 ? 'day' : 'days'} you can restore it with all its versions, at the same address; then it is permanently removed.`}
      </Text>
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Keep it
        </Button>
        <Button color="red" onClick={run} loading={isBusy}>
          Delete it
        </Button>
      </Group>
    </>
  );
}
