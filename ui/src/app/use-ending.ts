import { useState } from 'react';
import { queryClient } from '../api/queries.ts';
import { announce } from './announce.tsx';

type Ending = {
  /** The call that ends it. */
  readonly end: () => Promise<unknown>;
  /** Said to who does not see it go. */
  readonly said: string;
  /** The list it stood in. */
  readonly list: 'clients' | 'keys' | 'sites';
  readonly onClose: () => void;
  readonly onDone: () => void;
};

/** What a dialog does that ends something for good: it stays with the problem when that fails, and goes when it is done. */
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
