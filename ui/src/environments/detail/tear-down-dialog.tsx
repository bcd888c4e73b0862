import { Button, Group, Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { useEnding } from '../../shell/use-ending.ts';
import type { Environment } from '../environment-words.ts';

type DialogProps = { readonly of: Environment; readonly isOpen: boolean; readonly onClose: () => void };

export function TearDownDialog({ of, isOpen, onClose }: DialogProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title="Tear this Environment down?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Question of={of} onClose={onClose} />
    </Modal>
  );
}

function Question({ of: { id, uuid, repository, branch }, onClose }: Omit<DialogProps, 'isOpen'>) {
  const { run, error, isBusy } = useEnding({
    end: () => unwrap(api.DELETE('/environments/{id}', { params: { path: { id } } })),
    said: `${uuid} is being torn down.`,
    list: 'environments',
    onClose,
    onDone: () => undefined,
  });
  return (
    <>
      <Text size="sm">
        <b>
          <bdi>{uuid}</bdi>
        </b>
        , which runs <bdi>{branch}</bdi> of {repository}, stops being served at once. Its processes and
        databases are removed, with everything they stored. The branch and its commits stay as they are. This
        cannot be undone.
      </Text>
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Keep it
        </Button>
        <Button color="red" onClick={run} loading={isBusy}>
          Tear it down
        </Button>
      </Group>
    </>
  );
}
