import { Button, Group, Modal, Text } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { useEnding } from '../../shell/use-ending.ts';
import { AccessField } from '../access-field.tsx';
import { type Access, accessChoices } from '../environment-words.ts';
import type { Facts } from './facts.ts';

type DialogProps = Facts & { readonly isOpen: boolean; readonly onClose: () => void };

export function AccessDialog({ isOpen, ...rest }: DialogProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={rest.onClose}
      title="Who may open it?"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {isOpen && <Choice {...rest} />}
    </Modal>
  );
}

function Choice({ environment, policy, me, onClose }: Omit<DialogProps, 'isOpen'>) {
  const [access, setAccess] = useState(environment.access);
  const { run, error, isBusy } = useEnding({
    end: () =>
      unwrap(api.PATCH('/environments/{id}', { params: { path: { id: environment.id } }, body: { access } })),
    said: 'Access has changed. The services have new URLs.',
    list: 'environments',
    onClose,
    onDone: () => undefined,
  });
  const isCreator = environment.createdBy.kind === 'user' && environment.createdBy.id === me;
  const width = (value: Access) => accessChoices.findIndex((choice) => choice.value === value);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (access !== environment.access) run();
      }}
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
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Cancel
        </Button>
        <Button type="submit" loading={isBusy} disabled={access === environment.access}>
          Change access
        </Button>
      </Group>
    </form>
  );

  function reasonAgainst(choice: Access): string | undefined {
    if (choice === environment.access || isCreator) return undefined;
    if (choice === 'owner') return 'Only its creator can choose this.';
    return width(choice) > width(environment.access)
      ? 'Only its creator can let more people open it.'
      : undefined;
  }
}
