import { useSyncExternalStore } from 'react';

/** Says to screen readers what happened where the eye sees it anyway, such as a row that is gone. */
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
