import { type RefObject, useEffect } from 'react';

const steps: Readonly<Record<string, 'nextElementSibling' | 'previousElementSibling'>> = {
  ArrowDown: 'nextElementSibling',
  ArrowUp: 'previousElementSibling',
};

/** Up and down go from the link of a row to that of its neighbour; Enter then opens it, as it does any link. */
export function useArrows(body: RefObject<HTMLTableSectionElement | null>): void {
  useEffect(() => {
    const rows = body.current;
    function move(event: KeyboardEvent): void {
      const step = steps[event.key];
      const from = event.target instanceof HTMLAnchorElement ? event.target.closest('tr') : null;
      if (step === undefined || from === null) return;
      const link = from[step]?.querySelector<HTMLElement>('th a');
      if (link === null || link === undefined) return;
      event.preventDefault();
      link.focus();
    }
    rows?.addEventListener('keydown', move);
    return () => rows?.removeEventListener('keydown', move);
  }, [body]);
}
