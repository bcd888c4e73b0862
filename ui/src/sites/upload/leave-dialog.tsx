import { Button, Group, Modal, Text } from '@mantine/core';

type LeaveProps = { readonly isOpen: boolean; readonly onStay: () => void; readonly onLeave: () => void };

export function LeaveDialog({ isOpen, onStay, onLeave }: LeaveProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={onStay}
      title="Stop the upload?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Text size="sm">It is not finished. If you leave this page it stops, and nothing is published.</Text>
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onStay}>
          Stay here
        </Button>
        <Button color="red" onClick={onLeave}>
          Stop and leave
        </Button>
      </Group>
    </Modal>
  );
}
