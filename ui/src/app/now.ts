import { useEffect, useState } from 'react';

/** The moment by this machine's clock, moving on twice a minute, so that “in 2 minutes” does not stay true for ever. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 30_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
