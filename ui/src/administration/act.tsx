import { Button, Group, Modal, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { flushSync } from 'react-dom';
import { queryClient } from '../api/queries.ts';
import { announce } from '../shell/announce.tsx';
import { Problem } from '../shell/problem.tsx';

type Act = {
  readonly act: () => Promise<unknown>;
  /** Announced to screen readers when the change succeeds. */
  readonly said: string;
  /** The part of the `admin` queries to refetch. */
  readonly refresh:
    | 'keys'
    | 'sites'
    | 'users'
    | 'groups'
    | 'repositories'
    | 'metadata'
    | 'notices'
    | 'servers'
    | 'agents';
  /** Runs before the refetch, so that a page about a deleted item can navigate away first. */
  readonly onDone: () => void | Promise<void>;
  /** Runs when the error is on the page. */
  readonly onFailed?: () => void;
};

/** Runs one action, keeps its error if it fails, and refetches the lists that it changes. */
export function useAct({ act, said, refresh, onDone, onFailed }: Act) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function run(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await act();
      announce(said);
      await onDone();
      await queryClient.invalidateQueries({ queryKey: ['admin', refresh] });
    } catch (failure) {
      flushSync(() => setError(failure));
      onFailed?.();
    } finally {
      setBusy(false);
    }
  }

  return { run: () => void run(), error, isBusy };
}

type DialogProps = {
  readonly isOpen: boolean;
  readonly title: string;
  readonly size?: 'md' | 'lg' | 'xl';
  readonly onClose: () => void;
  readonly children: ReactNode;
};

/** Its content mounts again each time it opens, so no earlier input remains. */
export function Dialog({ isOpen, title, size = 'md', onClose, children }: DialogProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title={title}
      size={size}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {isOpen && children}
    </Modal>
  );
}

type ConfirmProps = Act & {
  /** What will happen, in plain words. */
  readonly children: ReactNode;
  readonly confirm: string;
  readonly keep: string;
  /** The text that the user must type before confirming. */
  readonly typed?: string;
  readonly isHarmless?: boolean;
  readonly isReady?: boolean;
  readonly onClose: () => void;
};

/** The content of a confirmation dialog. */
export function Confirm(props: ConfirmProps) {
  const { children, confirm, keep, typed, isHarmless = false, isReady = true, onClose } = props;
  const { run, error, isBusy } = useAct(props);
  const [text, setText] = useState('');
  const isSure = isReady && (typed === undefined || text.trim().normalize() === typed.trim().normalize());
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
          label="Type its name to confirm"
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
