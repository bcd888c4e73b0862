import { useState } from 'react';
import { flushSync } from 'react-dom';
import { queryClient } from '../api/queries.ts';
import { announce, type Undo } from './announce.tsx';

type Own = 'agents' | 'clients' | 'connections' | 'environments' | 'keys' | 'passkeys' | 'sessions' | 'sites';
type Administered =
  | 'keys'
  | 'sites'
  | 'users'
  | 'groups'
  | 'repositories'
  | 'metadata'
  | 'notices'
  | 'servers'
  | 'agents';

export type Change = {
  /** The request. A page about the item that it deletes navigates away here, before the refetch. */
  readonly act: () => Promise<unknown>;
  /** The confirmation when it succeeds. */
  readonly said: string;
  /** Undoes the change, if possible. */
  readonly undo?: Undo | undefined;
  /** The start of the keys of the queries to refetch. */
  readonly refresh: readonly [Own] | readonly ['admin', Administered];
  /** Closes the dialog when the change succeeds. */
  readonly onClose?: () => void;
  /** Runs after the refetch, which may remove the element that had the focus. */
  readonly onDone?: (() => unknown) | undefined;
  /** Runs when the error is on the page. */
  readonly onFailed?: () => void;
};

/** Runs one change, keeps its error if it fails, and refetches the lists that show the item. */
export function useChange({ act, said, undo, refresh, onClose, onDone, onFailed }: Change) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const refetch = () => queryClient.invalidateQueries({ queryKey: refresh });

  async function run(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await act();
      announce(said, undo && { ...undo, act: () => undo.act().then(refetch) });
      onClose?.();
      await refetch();
      onDone?.();
    } catch (failure) {
      flushSync(() => setError(failure));
      onFailed?.();
    } finally {
      setBusy(false);
    }
  }

  return { run: () => void run(), error, isBusy };
}
