import { Modal, Text } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import { AccessField } from '../access-field.tsx';
import { type Access, accessChoices } from '../environment-words.ts';
import type { Facts } from './facts.ts';

type DialogProps = Facts & { readonly isOpen: boolean; readonly onClose: () => void };

export function AccessDialog({ isOpen, ...rest }: DialogProps) {
  return (
    <Modal opened={isOpen} onClose={rest.onClose} title="Who may open it?">
      <Choice {...rest} />
    </Modal>
  );
}

function Choice({ environment, policy, me, onClose }: Omit<DialogProps, 'isOpen'>) {
  const [access, setAccess] = useState(environment.access);
  const params = { path: { id: environment.id } };
  const isCreator = environment.createdBy.kind === 'user' && environment.createdBy.id === me;
  const width = (value: Access) => accessChoices.findIndex((choice) => choice.value === value);
  return (
    <Confirm
      act={() => unwrap(api.PATCH('/environments/{id}', { params, body: { access } }))}
      said="Access has changed. The services have new URLs."
      refresh={['environments']}
      confirm="Change access"
      keep="Cancel"
      isHarmless
      isReady={access !== environment.access}
      onClose={onClose}
    >
      <AccessField
        hasTitle
        value={access}
        // The current access stays a choice even when the policy no longer allows it.
        allowed={[...policy.allowedAccess, environment.access]}
        error={undefined}
        reasonAgainst={reasonAgainst}
        onChange={setAccess}
      />
      <Text size="sm" mt="md" c="dimmed">
        The services get new URLs at once, and the current ones stop working. Services that use one of these
        URLs are deployed again.
      </Text>
    </Confirm>
  );

  function reasonAgainst(choice: Access): string | undefined {
    if (choice === environment.access || isCreator) return undefined;
    if (choice === 'owner') return 'Only its creator can choose this.';
    return width(choice) > width(environment.access)
      ? 'Only its creator can let more people open it.'
      : undefined;
  }
}
