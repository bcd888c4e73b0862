import { useSyncExternalStore } from 'react';

/** Announces to screen readers a change that is otherwise only visible, such as a removed row. */
let said = '';
const listeners = new Set<() => void>();

export function announce(text: string): void {
  said = text;
  for (const tell of listeners) tell();
}

export function Announcements() {
  const text = useSyncExternalStore(subscribe, () => said);
  return (
    <div role="status" className="unseen">
      {text}
    </div>
  );
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
