import { useState } from 'react';
import { queryClient } from '../api/queries.ts';
import { announce } from '../shell/announce.tsx';

/** One change of a site by a button: it stays with the problem when it fails, and everything read is read again when it is done. */
export function useChange(
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
      await queryClient.invalidateQueries({ queryKey: ['sites'] });
      onDone();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  return { run: () => void run(), error, isBusy };
}
