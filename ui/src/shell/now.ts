import { useEffect, useState } from 'react';

/** The time of this machine's clock, updated twice a minute, so that texts such as “in 2 minutes” stay current. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
