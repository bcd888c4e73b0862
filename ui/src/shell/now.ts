import { useEffect, useState } from 'react';

/** The time of this machine's clock, updated twice a minute, so that texts such as “in 2 minutes” stay current. */
export function useNow(everyMs = 30_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
