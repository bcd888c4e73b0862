import { useState } from 'react';
import { queryClient } from '../api/queries.ts';
import { announce, type Undo } from './announce.tsx';

type Ending = {
  /** The call that deletes or ends the item. */
  readonly end: () => Promise<unknown>;
  /** The confirmation when it succeeds. */
  readonly said: string;
  /** Undoes the change, if possible. */
  readonly undo?: Undo;
  /** The list that showed the item. */
  readonly list: 'agents' | 'clients' | 'connections' | 'environments' | 'keys' | 'sites';
  readonly onClose: () => void;
  readonly onDone: () => void;
};

/** The action of a dialog that deletes or ends an item. The dialog shows the error on failure and closes on success. */
export function useEnding({ end, said, undo, list, onClose, onDone }: Ending) {
  const readAgain = () => queryClient.invalidateQueries({ queryKey: [list] });
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
    announce(
      said,
      undo && {
        ...undo,
        act: async () => {
          await undo.act();
          await readAgain();
        },
      },
    );
    onClose();
    await readAgain();
    onDone();
  }

  return { run: () => void run(), error, isBusy };
}
