import { Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import type { Environment } from '../environment-words.ts';

type DialogProps = { readonly of: Environment; readonly isOpen: boolean; readonly onClose: () => void };

export function TearDownDialog({ of: { id, uuid, repository, branch }, isOpen, onClose }: DialogProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="Tear this Environment down?">
      <Confirm
        act={() => unwrap(api.DELETE('/environments/{id}', { params: { path: { id } } }))}
        said={`${uuid} is being torn down.`}
        refresh={['environments']}
        confirm="Tear it down"
        keep="Keep it"
        onClose={onClose}
      >
        <Text size="sm">
          <b>
            <bdi>{uuid}</bdi>
          </b>
          , which runs <bdi>{branch}</bdi> of {repository}, stops being served at once. Its processes and
          databases are removed, with everything they stored. The branch and its commits stay as they are.
          This cannot be undone.
        </Text>
      </Confirm>
    </Modal>
  );
}
