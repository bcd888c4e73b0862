import Fastify from 'fastify';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allRoutes } from '../../src/composition/all-routes.ts';
import { version } from '../../src/platform/version.ts';
import { buildOpenApi } from '../../src/surfaces/web/openapi/openapi.ts';
import { referencePage } from '../../src/surfaces/web/reference/reference.ts';
import { overflowOf } from './app-pages.ts';
import { launch } from './real-ports.ts';

const app = Fastify();
let browser: Browser;
let address: string;

beforeAll(async () => {
  const document = buildOpenApi({ routes: await allRoutes(), version, serverUrl: 'https://postern.example' });
  await app.register(async (scope) => referencePage(() => document)(scope));
  address = await app.listen({ port: 0, host: '127.0.0.1' });
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  await app.close();
});

const screens = [
  { width: 320, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
  { width: 900, colorScheme: 'light' },
  { width: 1440, colorScheme: 'dark' },
] as const;

test.each(screens)(
  'the API reference fits $width pixels in $colorScheme, within its own policy',
  async (screen) => {
    const { width, colorScheme } = screen;
    const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    await page.goto(`${address}/api/v2/docs#rate_limited`);
    await expect
      .poll(async () => ({
        overflow: await overflowOf(page),
        margin: await page.evaluate('getComputedStyle(document.body).margin'),
        isShown: await page.evaluate(
          'document.getElementById("rate_limited").getBoundingClientRect().top < innerHeight',
        ),
      }))
      .toEqual({ overflow: 0, margin: '0px', isShown: true });
    expect(complaints).toEqual([]);
    await page.close();
  },
);

test('the reference begins with its groups closed, and a search field filters it', {
  tags: 'core',
}, async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  await page.goto(`${address}/api/v2/docs`);
  const height = () => page.evaluate<number>('document.documentElement.scrollHeight');
  await expect.poll(height).toBeLessThan(25_000);
  const shown = page.locator('main .operation[id]:visible h3');
  const field = page.getByRole('searchbox', { name: 'Filter' });
  await field.fill('publish new CONTENT');
  const found = page.getByRole('status');
  await found.getByText('1 operation', { exact: true }).waitFor();
  await expect
    .poll(async () => (await shown.allTextContents()).filter((text) => text.startsWith('Publish')))
    .toEqual(['Publish new content']);
  const links = page.locator('.toc-wide li:visible');
  await expect.poll(() => links.count()).toBe(1);
  await field.fill('no such thing');
  await found.getByText('0 operations', { exact: true }).waitFor();
  await field.fill('');
  await links.nth(50).waitFor();
  // An answer links to its error, a colleague to an operation: both are found in a closed group.
  await page.goto('about:blank');
  await page.goto(`${address}/api/v2/docs#replaceSiteContent`);
  await page.getByRole('heading', { name: 'Publish new content' }).waitFor();
  expect(complaints).toEqual([]);
  await page.close();
});
