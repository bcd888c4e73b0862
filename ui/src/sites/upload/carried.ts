import { useNavigate } from '@tanstack/react-router';
import type { Picked } from './picked.ts';

/** Passes dropped files from a page that cannot use them to one that can. An address cannot hold files. */
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

/** The files that arrived. They stay until the page releases them, so that a second read finds the same. */
export function arrived(): Picked | null {
  return carried;
}

export function letGo(): void {
  carried = null;
}
