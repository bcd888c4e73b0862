import { Button, Group, Modal, TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { queryClient } from '../api/queries.ts';
import { announce } from '../app/announce.tsx';
import { Problem } from '../app/problem.tsx';

type Act = {
  readonly act: () => Promise<unknown>;
  /** Said to who does not see the change. */
  readonly said: string;
  /** The part of `admin` that is read anew. */
  readonly refresh: 'keys' | 'sites' | 'users' | 'groups' | 'repositories' | 'notices';
  /** Before anything is read anew: a page that shows what is gone can be left first. */
  readonly onDone: () => void | Promise<void>;
};

/** Does one thing, keeps the problem when it fails, and has the lists tell the new state. */
export function useAct({ act, said, refresh, onDone }: Act) {
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
      setError(failure);
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

/** What is in it begins anew each time it opens. */
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
  /** Has to be typed first. */
  readonly typed?: string;
  readonly isHarmless?: boolean;
  readonly isReady?: boolean;
  readonly onClose: () => void;
};

/** The inside of a dialog that asks before something is done. */
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
          label="Type its name to go on"
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
