import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { create, fillIn, signIn, store, valueShown } from './app-pages.ts';
import { openProgram } from './real-ports.ts';

// Takes the pictures of docs/tutorial.md and docs/how-to/connect-an-agent.md again, from the real program: npm run pictures. No value of a key is on one.
const folder = join(import.meta.dirname, '../../docs/pictures');
const person = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple' };

const program = await openProgram();
try {
  const context = await program.browser.newContext({
    viewport: { width: 1100, height: 760 },
    colorScheme: 'light',
    reducedMotion: 'reduce',
    locale: 'en-GB',
  });
  const page = await context.newPage();
  await mkdir(folder, { recursive: true });
  await tellStory(page);
} finally {
  await program.close();
}

async function picture(page: Page, name: string, secret: readonly Locator[] = []): Promise<void> {
  // What points or has just been said would be on one picture and not on the next.
  await page.mouse.move(0, 0);
  await page.screenshot({
    path: join(folder, `${name}.png`),
    mask: [...secret],
    maskColor: '#c9d0ea',
    animations: 'disabled',
  });
  console.log(`docs/pictures/${name}.png`);
}

async function tellStory(page: Page): Promise<void> {
  await page.goto(program.setupLink);
  await page.fill('input[name=name]', person.name);
  await page.fill('input[name=email]', person.email);
  await page.fill('input[name=password]', person.password);
  await page.click('button');
  await page.waitForSelector('input[autocomplete="current-password"]');
  await signIn(page, person);
  await page.getByText('First steps').waitFor();
  await page.getByText('0 of 5 done').waitFor();
  await picture(page, 'start');

  await page.goto(`${program.origin}/settings/keys/new`);
  await fillIn(page, { name: 'website-deploy', preset: 'Publish sites from CI', where: [] });
  await page.getByText('website-deploy may').waitFor();
  await picture(page, 'new-key');
  await create(page);
  await valueShown(page);
  await picture(page, 'key-shown-once', [page.getByRole('dialog').getByLabel('Key', { exact: true })]);
  await store(page);

  await page.goto(`${program.origin}/sites`);
  await page.getByText('No sites yet').waitFor();
  await picture(page, 'sites-empty');
  await page.goto(`${program.origin}/sites/new`);
  await page.getByLabel('File to publish').setInputFiles({
    name: 'hello.html',
    mimeType: 'text/html',
    buffer: Buffer.from('<!doctype html><title>Hello</title><h1>Hello</h1>'),
  });
  await page.locator('form').getByLabel('Name').fill('Hello');
  await page.getByLabel('Everyone').check();
  await page.getByRole('button', { name: 'Publish', exact: true }).click();
  await page.getByText('1 file added').waitFor();
  await page.evaluate('scrollTo(0, 0)');
  await picture(page, 'site-live');

  await page.goto(`${program.origin}/admin/mcp`);
  await page.getByRole('switch', { name: /MCP is on/ }).press('Space');
  await page.getByRole('switch', { name: /Agents may change things/ }).press('Space');
  await page.getByText('2 settings changed').waitFor();
  await picture(page, 'mcp-policy');
  await page.getByRole('button', { name: 'Review changes' }).click();
  await page.getByRole('button', { name: 'Save for everyone' }).click();
  await page.getByText('2 settings changed', { exact: true }).waitFor();
  await page.goto(`${program.origin}/admin/agents/new`);
  await page.getByLabel('Name').fill('Handbook');
  await page.getByLabel('Purpose').fill('Publishes the handbook');
  await page.evaluate('document.activeElement.blur(); scrollTo(0, 0)');
  await picture(page, 'agent-definition');
}
