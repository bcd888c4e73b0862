import { useNavigate } from '@tanstack/react-router';
import type { Picked } from './picked.ts';

/** What was dropped on a page that cannot use it, on its way to the one that can. Files fit in no address. */
let carried: Picked | null = null;

export function carryTo(picked: Picked): void {
  carried = picked;
}

export function useCarry(): (picked: Picked) => void {
  const navigate = useNavigate();
  return (picked) => {
    carryTo(picked);
    void navigate({ to: '/sites/new' });
  };
}

/** What arrived; it stays until the page lets it go, so that a second look finds the same. */
export function arrived(): Picked | null {
  return carried;
}

export function letGo(): void {
  carried = null;
}
