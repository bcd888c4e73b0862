import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LocalEngine } from '../../src/features/engine/local/local-engine.ts';
import { minute } from '../../src/core/clock.ts';
import { openEngine } from '../api/environments/shop.ts';
import { isBwrapMissing } from '../engines/local-machine.ts';
import type { Person } from '../harness.ts';
import type { TestRepository } from '../git-repository.ts';
import { installVite, shopFile, shopFiles } from '../shop-example.ts';
import { hour, registered, setPolicy } from './environment-pages.ts';
import { visit } from './app-pages.ts';
import { openWorld, signIn, type World } from './real-ports.ts';

/**
 * The life of one Environment, with nothing simulated but the time: both services are in bubblewrap, and a colleague opens it
 * in Chromium.
 */
let world: World;
let ada: Person;
let repository: TestRepository;
let engine: LocalEngine | undefined;
const folder = mkdtempSync(join(tmpdir(), 'postern-example-'));
beforeAll(async () => {
  world = await openWorld({
    engine: async (blobs) => (engine = await openEngine(join(folder, 'builds'), 'bwrap', blobs)),
    allowsFileRepositories: true,
  });
  ada = await world.h.person('Ada', { admin: true });
  await setPolicy(world, ada, { enabled: true });
  repository = await registered(world, ada, 'acme/shop');
  installVite(join(repository.folder, 'web/node_modules'));
  repository.commit({ 'postern.yaml': shopFile('node:24'), ...shopFiles({ words: 'Shop', stock: 12 }) });
});
afterAll(async () => {
  // What runs outlives the server, and so would outlive the test.
  for (const id of await world.h.app.services.read.environments.living()) await engine?.remove(id);
  await engine?.stop();
  await world.close();
  repository.remove();
  rmSync(folder, { recursive: true, force: true });
});

const terminal = ['deployed', 'error', 'config_error', 'asleep', 'torn_down'];

/** Runs the worker until the Environment has this status. */
async function settle(id: string, status: string, as = ada): Promise<void> {
  const { jobs, services } = world.h.app;
  for (;;) {
    for (const job of ['environment-wake', 'environments', 'builds']) await jobs.runNow(job);
    await services.environmentServices.reconciler.idle();
    await services.buildServices.buildRunner?.settled();
    const { data } = await world.call('GET', `/environments/${id}`, { as });
    if (data.status === status) return;
    if (terminal.includes(data.status) && data.status !== 'deployed' && data.status !== 'asleep')
      throw new Error(`${data.status}: ${data.statusMessage}`);
  }
}

/** Opens it by its link and waits for what its API answers. */
async function opened(page: Page, link: string, words: string): Promise<void> {
  await page.goto(link);
  await page.locator('#answer', { hasText: words }).waitFor();
}

test.skipIf(isBwrapMissing)(
  'a shop is built, opened, changed, extended, put to sleep, woken, and ends with its lease',
  async () => {
    const context = await world.browser.newContext({ viewport: { width: 1280, height: 800 } });
    const { page } = await visit(context);
    await signIn(page, ada, world.uiUrl);
    await page.goto(`${world.uiUrl}/environments/new?repository=acme/shop`);
    await page.getByRole('combobox', { name: 'Branch' }).fill('ma');
    await page.getByRole('option', { name: 'main' }).click();
    await page.getByText('2 services').waitFor();
    await page.getByLabel('Follow the branch').check();
    await page.getByLabel('Name').fill('shop');
    await page.getByRole('button', { name: 'Create the Environment', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
    const { data: shop } = await world.call('GET', '/environments/shop', { as: ada });
    await settle(shop.id, 'deployed');

    await page.getByText('Deployed', { exact: true }).first().waitFor();
    await page.getByRole('tab', { name: 'Log' }).click();
    await page.getByText(/vite v\d.* building/).waitFor();
    await page.getByText('Running processes').click();
    await page.getByText('the stock is 12').waitFor();
    await opened(page, shop.link, 'Shop: 12 left');

    repository.commit(shopFiles({ words: 'New shop', stock: 12 }));
    await world.advance(minute);
    await world.h.app.jobs.runNow('environment-branches');
    await expect
      .poll(async () => (await world.call('GET', '/environments/shop', { as: ada })).data.status)
      .not.toBe('deployed');
    await settle(shop.id, 'deployed');
    const { data: deploys } = await world.call('GET', '/builds', { as: ada, query: { environment: 'shop' } });
    const built = deploys[0].steps.filter(({ step }: { step: string }) => step === 'build');
    expect(built).toMatchObject([
      { service: 'api', reused: true },
      { service: 'web', reused: false },
    ]);
    expect(deploys[0].trigger).toBe('push');
    await opened(page, shop.link, 'New shop: 12 left');

    await page.goto(`${world.uiUrl}/environments/shop`);
    await page.getByRole('button', { name: 'Extend by 1 day' }).click();
    await page.getByText('The lease of shop is extended.').waitFor();

    await world.advance(61 * minute);
    await world.h.app.jobs.runNow('environment-sleep');
    await settle(shop.id, 'asleep');
    await page.reload();
    await page.getByText('It is asleep').waitFor();
    expect(await engine?.observe(shop.id)).toMatchObject([{ service: 'api', state: 'stopped' }]);
    await Promise.all([opened(page, shop.link, 'New shop: 12 left'), settle(shop.id, 'deployed')]);

    await world.advance(97 * hour);
    await world.h.app.jobs.runNow('environments');
    const eve = await world.h.person('Eve');
    await signIn(page, eve, world.uiUrl);
    await settle(shop.id, 'torn_down', eve);
    await page.goto(`${world.uiUrl}/environments/${shop.id}`);
    await page.getByText('It was torn down').waitFor();
    expect(await engine?.observe(shop.id)).toEqual([]);
    await context.close();
  },
);
