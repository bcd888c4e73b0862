import { Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import common from './admin.module.css';

type FormProps = {
  /** What the button that sends it says. */
  readonly send: string;
  readonly isBusy: boolean;
  readonly onSend: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
};

/** The content of a dialog with a form: its fields, a submit button and a cancel button. */
export function DialogForm({ send, isBusy, onSend, onClose, children }: FormProps) {
  return (
    <form
      noValidate
      className={common['stack']}
      onSubmit={(event) => {
        event.preventDefault();
        onSend();
      }}
    >
      {children}
      <Group justify="flex-end" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Cancel
        </Button>
        <Button type="submit" loading={isBusy}>
          {send}
        </Button>
      </Group>
    </form>
  );
}
