import { useEffect, useState } from 'react';
import { followLog, type LogState } from './follow-log.ts';
import { type LogLines, noLines, withLines } from './log-lines.ts';

/** Follows the log of one deploy while the component is shown. */
export function useLog(buildId: string): { readonly log: LogLines; readonly state: LogState } {
  const [log, setLog] = useState(noLines);
  const [state, setState] = useState<LogState>({ kind: 'waiting' });
  useEffect(() => {
    const leaving = new AbortController();
    void followLog({
      buildId,
      signal: leaving.signal,
      onLines: (lines) => setLog((before) => withLines(before, lines)),
      onState: setState,
    });
    return () => leaving.abort();
  }, [buildId]);
  return { log, state };
}
