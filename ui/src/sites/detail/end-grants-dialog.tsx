import { Button, Group, Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { useEnding } from '../../shell/use-ending.ts';
import type { Site } from '../site-words.ts';

type DialogProps = { readonly site: Site; readonly isOpen: boolean; readonly onClose: () => void };

export function EndGrantsDialog({ site, isOpen, onClose }: DialogProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title="End all grants?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Question site={site} onClose={onClose} />
    </Modal>
  );
}

function Question({ site, onClose }: Omit<DialogProps, 'isOpen'>) {
  const { run, error, isBusy } = useEnding({
    end: () => unwrap(api.DELETE('/sites/{id}/grants', { params: { path: { id: site.id } } })),
    said: 'All grants are ended.',
    list: 'sites',
    onClose,
    onDone: () => undefined,
  });
  return (
    <>
      <Text size="sm">
        Every browser that reads <bdi>{site.name}</bdi> now, including yours, loses access at its next
        request, everywhere. Anyone who opens the link again is checked again. Copies that people saved remain
        with them.
      </Text>
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Keep them
        </Button>
        <Button color="red" onClick={run} loading={isBusy}>
          End all grants
        </Button>
      </Group>
    </>
  );
}
