import { Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import type { Site } from '../site-words.ts';

type DialogProps = { readonly site: Site; readonly isOpen: boolean; readonly onClose: () => void };

export function EndGrantsDialog({ site, isOpen, onClose }: DialogProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="End all grants?">
      <Confirm
        act={() => unwrap(api.DELETE('/sites/{id}/grants', { params: { path: { id: site.id } } }))}
        said="All grants are ended."
        refresh={['sites']}
        confirm="End all grants"
        keep="Keep them"
        onClose={onClose}
      >
        <Text size="sm">
          Every browser that reads <bdi>{site.name}</bdi> now, including yours, loses access at its next
          request, everywhere. Anyone who opens the link again is checked again. Copies that people saved
          remain with them.
        </Text>
      </Confirm>
    </Modal>
  );
}
