import { TestRunner } from 'vitest';

/** A measurement of a suite besides pass and fail; figures-reporter.ts prints all of them as a table at the end. */
export type Figure = { readonly what: string; readonly figure: string };

declare module 'vitest' {
  interface TaskMeta {
    figures?: Figure[];
  }
}

/** @throws Error outside a test */
export function tell(what: string, figure: string): void {
  const meta = TestRunner.getCurrentTest()?.meta;
  if (meta === undefined) throw new Error('A figure belongs to a test, and none runs.');
  meta.figures = [...(meta.figures ?? []), { what, figure }];
}

/** Records how long it took until `who` was served again, in ms. */
export function tellRecovery(who: string, ms: number): void {
  tell(`back: ${who}`, `${Math.round(ms)} ms`);
}
