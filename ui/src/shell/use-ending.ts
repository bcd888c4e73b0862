import { useState } from 'react';
import { queryClient } from '../api/queries.ts';
import { announce } from './announce.tsx';

type Ending = {
  /** The call that ends it. */
  readonly end: () => Promise<unknown>;
  /** Announced to screen readers when it succeeds. */
  readonly said: string;
  /** The list it stood in. */
  readonly list: 'agents' | 'clients' | 'connections' | 'environments' | 'keys' | 'sites';
  readonly onClose: () => void;
  readonly onDone: () => void;
};

/** The action of a dialog that ends something permanently. The dialog shows the error on failure and closes on success. */
export function useEnding({ end, said, list, onClose, onDone }: Ending) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function run(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      await end();
    } catch (failure) {
      setError(failure);
      setBusy(false);
      return;
    }
    announce(said);
    onClose();
    await queryClient.invalidateQueries({ queryKey: [list] });
    onDone();
  }

  return { run: () => void run(), error, isBusy };
}
