import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Person } from '../harness.ts';
import { visit } from './app-pages.ts';
import { engineWith, insertEnvironment, registered, setPolicy } from './environment-pages.ts';
import { openWorld, signIn, type World } from './real-ports.ts';

// The first page that a browser loads, with nothing in its cache.
let world: World;
let ada: Person;
/** For each list, what it asks for when its rows are visible. */
const lastAsked = {
  '/settings/keys': [expect.stringContaining('/me/tokens/usage?')],
  '/environments': [expect.stringContaining('/environments?')],
  '/sites': [expect.stringContaining('/sites?')],
};
const lists = ['/settings/keys', '/environments', '/sites'] as const;
const preloaded = ['/api/v2/auth/context', '/api/v2/me/notices?unread=true&limit=1'];

beforeAll(async () => {
  world = await openWorld({ engine: engineWith([]), allowsFileRepositories: true });
  ada = await world.h.person('Ada', { admin: true });
  await setPolicy(world, ada, { enabled: true });
  await registered(world, ada, 'acme/shop');
  await insertEnvironment(world, ada, {});
  await world.publish(ada, 'public', { 'index.html': '<!doctype html><h1>Hello</h1>' });
  const body = { name: 'backup', scopes: ['sites:read'], repositoryAccess: { mode: 'all' } };
  await world.call('POST', '/me/tokens', { as: ada, body });
});
afterAll(() => world.close());

async function firstVisit(options: BrowserContextOptions = {}) {
  const context = await world.browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const { page, complaints } = await visit(context);
  await signIn(page, ada, world.uiUrl);
  world.seen.length = 0;
  return { context, page, complaints };
}

const asked = () => world.seen.map(({ url }) => url.slice(world.uiUrl.length));

test.for(lists)('the first visit to %s makes at most 15 requests, and none twice', async (path) => {
  const { context, page, complaints } = await firstVisit();
  await page.goto(`${world.uiUrl}${path}`);
  await page.getByRole('table').waitFor();
  await expect.poll(asked).toEqual(expect.arrayContaining(lastAsked[path]));
  const urls = asked();
  expect(urls).toEqual(expect.arrayContaining([path, ...preloaded]));
  expect(urls.length).toBeLessThanOrEqual(15);
  expect(urls.toSorted()).toEqual([...new Set(urls)].toSorted());
  // An answer that was preloaded and not used is a warning in the console.
  expect(complaints).toEqual([]);
  await context.close();
});

test('the first calls of the API begin before the script does', async () => {
  const { context, page } = await firstVisit();
  await page.goto(`${world.uiUrl}/settings/keys`);
  await page.getByRole('table').waitFor();
  const started = await page.evaluate<[string, number][]>(
    `performance.getEntriesByType('resource').map(({ name, startTime }) => [name.slice(location.origin.length), startTime])`,
  );
  const at = (fits: (name: string) => boolean) => started.find(([name]) => fits(name))?.[1];
  const script = at((name) => name.startsWith('/assets/index-'));
  for (const path of preloaded) expect(at((name) => name === path)).toBeLessThanOrEqual(Number(script));
  await context.close();
});

const headerOf = async (page: Page, header: string) => {
  const { height = 0, y } = (await page.locator(header).boundingBox()) ?? {};
  return { height, y };
};

test.for([
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
])(
  'without its script, the document at %s shows the outline of the page and asks for the first answers',
  async (viewport) => {
    const { context, page } = await firstVisit({ javaScriptEnabled: false, viewport });
    await page.goto(`${world.uiUrl}/sites`);
    await page.getByText('Postern', { exact: true }).waitFor();
    await expect.poll(asked).toEqual(expect.arrayContaining(preloaded));
    const outline = await headerOf(page, '.waiting-header');
    await expect.poll(() => page.locator('.waiting-page i').first().isVisible()).toBe(true);
    await expect.poll(() => page.locator('.waiting-menu i').first().isVisible()).toBe(viewport.width > 1_000);
    await context.close();

    // The page that follows has its bar at the same place.
    const shown = await firstVisit({ viewport });
    await shown.page.goto(`${world.uiUrl}/sites`);
    await shown.page.getByRole('table').waitFor();
    await expect.poll(() => headerOf(shown.page, 'header')).toEqual(outline);
    await shown.context.close();
  },
);

test('the menu is complete when it appears, however late the answer about Environments', async () => {
  const { context, page } = await firstVisit();
  await page.addInitScript(`
    globalThis.menus = [];
    new MutationObserver(() => {
      const menu = document.querySelector('#areas');
      if (menu !== null) menus.push(menu.querySelectorAll('a').length);
    }).observe(document, { childList: true, subtree: true });`);
  const policy = Promise.withResolvers<void>();
  await page.route('**/api/v2/environments/policy', async (route) => {
    await policy.promise;
    await route.continue();
  });
  await page.goto(`${world.uiUrl}/settings/keys`);
  await world.answered(({ url }) => url.includes('/assets/keys-'));
  policy.resolve();
  await page.getByRole('table').waitFor();
  await page
    .getByRole('navigation', { name: 'Areas' })
    .getByRole('link', { name: 'Environments' })
    .first()
    .waitFor();
  const counts = await page.evaluate<number[]>('[...new Set(menus)]');
  expect(counts).toHaveLength(1);
  await context.close();
});

test('a server that is busy from the first answer on does not prevent the page from saying so', async () => {
  const { context, page } = await firstVisit();
  for (const path of ['**/api/v2/auth/context', '**/api/v2/environments/policy']) {
    await page.route(
      path,
      (route) => route.fulfill({ status: 503, headers: { 'retry-after': '1' }, body: '' }),
      { times: 2 },
    );
  }
  await page.goto(`${world.uiUrl}/settings/keys`);
  await page.getByText('The server is busy.').waitFor();
  await page.getByRole('table').waitFor();
  await expect.poll(() => page.getByText('The server is busy.').count()).toBe(0);
  await context.close();
});
