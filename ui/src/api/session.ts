import { useSyncExternalStore } from 'react';

/** Whether the session has ended, by the last response. Input stays, and the user can sign in in another tab and continue. */
let hasEnded = false;
const listeners = new Set<() => void>();

export function noteAnswer(status: number): void {
  const ended = status === 401;
  if (ended === hasEnded) return;
  hasEnded = ended;
  for (const tell of listeners) tell();
}

export function useSessionHasEnded(): boolean {
  return useSyncExternalStore(subscribe, () => hasEnded);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
