import { Button, Notification } from '@mantine/core';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { ApiProblem } from '../api/client.ts';
import styles from './announce.module.css';

/** Undoes the confirmed change. */
export type Undo = {
  readonly act: () => Promise<unknown>;
  /** Confirmed in turn when it succeeds. */
  readonly said: string;
};

type Confirmation = { readonly id: number; readonly text: string; readonly undo: Undo | undefined };

let shown: Confirmation | undefined;
let last = 0;
const listeners = new Set<() => void>();

/** Confirms a change in a message that screen readers announce too. A new message replaces the previous one. */
export function announce(text: string, undo?: Undo): void {
  last += 1;
  show({ id: last, text, undo });
}

function show(next: Confirmation | undefined): void {
  shown = next;
  for (const tell of listeners) tell();
}

/** The region of the confirmations. It is always on the page, because screen readers announce changes of existing regions. */
export function Announcements() {
  const confirmation = useSyncExternalStore(subscribe, () => shown);
  return (
    <div role="status" className={styles['place']}>
      {confirmation !== undefined && <Message key={confirmation.id} of={confirmation} />}
    </div>
  );
}

/** Long enough to read a sentence three times, and to reach Undo by keyboard (WCAG 2.2.1). */
const shownMs = 10_000;
const undoableMs = 30_000;

function Message({ of: { id, text, undo } }: { of: Confirmation }) {
  const [isHovered, setHovered] = useState(false);
  const [isFocused, setFocused] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const isHeld = isHovered || isFocused || isBusy;
  const hasUndo = undo !== undefined;

  useEffect(() => {
    if (isHeld) return;
    const timer = setTimeout(() => dismiss(id), hasUndo ? undoableMs : shownMs);
    return () => clearTimeout(timer);
  }, [id, isHeld, hasUndo]);

  async function takeBack({ act, said }: Undo): Promise<void> {
    setBusy(true);
    try {
      await act();
      announce(said);
    } catch (error) {
      announce(
        `Undo failed. ${error instanceof ApiProblem ? error.message : 'Something went wrong in the web app. Try again.'}`,
      );
    }
    // The button that had the focus is gone.
    document.querySelector<HTMLElement>('#content')?.focus({ preventScroll: true });
  }

  return (
    <Notification
      role="group"
      aria-label="Confirmation"
      withBorder
      radius="md"
      className={styles['message'] ?? ''}
      closeButtonProps={{ 'aria-label': 'Dismiss' }}
      onClose={() => dismiss(id)}
      onPointerEnter={() => setHovered(true)}
      onPointerLeave={() => setHovered(false)}
      onFocus={() => setFocused(true)}
      onBlur={() => setFocused(false)}
    >
      <div className={styles['line']}>
        <span>{text}</span>
        {undo !== undefined && (
          <Button size="compact-sm" variant="light" loading={isBusy} onClick={() => void takeBack(undo)}>
            Undo
          </Button>
        )}
      </div>
    </Notification>
  );
}

function dismiss(id: number): void {
  if (shown?.id === id) show(undefined);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
