import { useState } from 'react';
import { queryClient } from '../api/queries.ts';
import { announce } from './announce.tsx';

/**
 * One change of an item by a button. The button keeps the error when the change fails; when it succeeds, everything that was
 * read of the list is read again.
 */
export function useChange(
  list: 'agents' | 'environments' | 'sites',
  change: () => Promise<unknown>,
  said: string,
  onDone: () => void = () => undefined,
) {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function run(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      await change();
      announce(said);
      await queryClient.invalidateQueries({ queryKey: [list] });
      onDone();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  return { run: () => void run(), error, isBusy };
}
