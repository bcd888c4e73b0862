import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { barriersOn, overflowOf } from './app-pages.ts';
import type { atPage, Look } from './site-pages.ts';

/** Names that contain markup, are written right to left, or are too long for one line. */
export const hostile = [
  '<img src=x onerror=alert(1)>',
  '"><script>alert(1)</script>',
  'مفتاح نشر الموقع',
  '👩‍👩‍👧‍👦 family 🔑',
  'w'.repeat(100),
];

/** A state of a page: its name, its path, and what shows that it is complete. */
export type State = readonly [name: string, path: string, show: (page: Page) => Promise<unknown>];

/** Tests that every state passes axe in both colour schemes and fits small screens. `states` runs inside a test, when the ids exist. */
export function testLooks(
  at: (path: string, look: Look) => ReturnType<typeof atPage>,
  states: () => readonly State[],
): void {
  test.each(['light', 'dark'] as const)('in %s, every page is accessible', async (colorScheme) => {
    const { page, context, complaints } = await at('/', { colorScheme });
    for (const [name, path, show] of states()) {
      await page.goto(new URL(path, page.url()).href);
      await show(page);
      await expect.poll(async () => [name, await barriersOn(page)]).toEqual([name, []]);
    }
    expect(complaints()).toEqual([]);
    await context.close();
  });

  test('every page fits a small screen, and a page at 200 %', async () => {
    const { page, context, complaints } = await at('/', { width: 320 });
    for (const [name, path, show] of states()) {
      await page.setViewportSize({ width: 320, height: 800 });
      await page.goto(new URL(path, page.url()).href);
      await show(page);
      for (const width of [320, 360, 640, 768]) {
        await page.setViewportSize({ width, height: 800 });
        await expect.poll(async () => [name, width, await overflowOf(page)]).toEqual([name, width, 0]);
      }
    }
    expect(complaints()).toEqual([]);
    await context.close();
  });
}
