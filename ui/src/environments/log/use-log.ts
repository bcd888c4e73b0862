import { useEffect, useState } from 'react';
import { followLog, type LogSource, type LogState } from './follow-log.ts';
import { type LogLines, noLines, withLines } from './log-lines.ts';

/** Follows one log while the component is shown. */
export function useLog({ kind, id }: LogSource): { readonly log: LogLines; readonly state: LogState } {
  const [log, setLog] = useState(noLines);
  const [state, setState] = useState<LogState>({ kind: 'waiting' });
  useEffect(() => {
    const leaving = new AbortController();
    void followLog({
      source: { kind, id },
      signal: leaving.signal,
      onLines: (lines) => setLog((before) => withLines(before, lines)),
      onState: setState,
    });
    return () => leaving.abort();
  }, [kind, id]);
  return { log, state };
}
