import { Button, Group, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Problem } from './problem.tsx';
import { type Change, useChange } from './use-change.ts';

type ConfirmProps = Change & {
  /** What will happen. */
  readonly children: ReactNode;
  readonly confirm: string;
  readonly keep: string;
  /** The text that the user must type before confirming. */
  readonly typed?: string;
  readonly typedLabel?: string;
  readonly isHarmless?: boolean;
  readonly isReady?: boolean;
  readonly onClose: () => void;
};

/** The content of a confirmation dialog. The dialog shows the error on failure and closes on success. */
export function Confirm(props: ConfirmProps) {
  const { children, confirm, keep, typed, isHarmless = false, isReady = true, onClose } = props;
  const { run, error, isBusy } = useChange(props);
  const [text, setText] = useState('');
  const isSure = isReady && (typed === undefined || plain(text) === plain(typed));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isSure) run();
      }}
    >
      {children}
      {typed !== undefined && (
        <TextInput
          mt="sm"
          data-autofocus
          label={props.typedLabel ?? 'Type its name to confirm'}
          autoComplete="off"
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
      )}
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          {keep}
        </Button>
        <Button type="submit" {...(isHarmless ? {} : { color: 'red' })} loading={isBusy} disabled={!isSure}>
          {confirm}
        </Button>
      </Group>
    </form>
  );
}

/** Ignores case: keyboards of phones capitalize the first letter. */
function plain(text: string): string {
  return text.trim().normalize().toLowerCase();
}
