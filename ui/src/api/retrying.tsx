import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import styles from './retrying.module.css';
import { secondsToWait } from './retries.ts';

/** Says that the server is busy, and when the page asks again. */
export function Retrying() {
  const seconds = useSecondsToRetry();
  if (seconds === undefined) return null;
  return (
    <p className={styles['note']} role="status">
      The server is busy. {seconds > 0 ? `Retrying in ${seconds} s…` : 'Retrying…'}
    </p>
  );
}

/** Undefined: no read waits for its retry. */
function useSecondsToRetry(): number | undefined {
  const client = useQueryClient();
  /** When each read is retried, by the hash of its query. */
  const [retries, setRetries] = useState<ReadonlyMap<string, number>>(new Map());
  const [now, setNow] = useState(Date.now);
  useEffect(
    () =>
      client.getQueryCache().subscribe((event) => {
        setRetries((before) => waitingOf(before, client));
        if (event.type !== 'updated' || event.action.type !== 'failed') return;
        const seconds = secondsToWait(event.action.error);
        if (seconds === undefined) return;
        const at = Date.now();
        setNow(at);
        setRetries((before) => new Map(before).set(event.query.queryHash, at + seconds * 1_000));
      }),
    [client],
  );
  const isWaiting = retries.size > 0;
  useEffect(() => {
    if (!isWaiting) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isWaiting]);
  return isWaiting ? Math.max(0, Math.ceil((Math.min(...retries.values()) - now) / 1_000)) : undefined;
}

/** Removes reads that succeeded, failed for good, or ended with their page. */
function waitingOf(retries: ReadonlyMap<string, number>, client: QueryClient): ReadonlyMap<string, number> {
  const isWaiting = (hash: string) => {
    const state = client.getQueryCache().get(hash)?.state;
    return state?.fetchStatus === 'fetching' && state.fetchFailureCount > 0;
  };
  const waiting = [...retries].filter(([hash]) => isWaiting(hash));
  return waiting.length === retries.size ? retries : new Map(waiting);
}
