import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { newRepository } from '../git-repository.ts';
import { create, fillIn, signIn, store, valueShown } from './app-pages.ts';
import { openProgram } from './real-ports.ts';

// Takes the pictures of README.md, docs/tutorial.md and docs/how-to/connect-an-agent.md again, from the real program: npm run pictures. No value of a key is on one.
const folder = join(import.meta.dirname, '../../docs/pictures');
const person = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple' };

const program = await openProgram({
  ENVIRONMENTS_ENGINE: 'local',
  ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true',
});
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

  await deployBranch(page);
  await page.getByText('Ready').nth(1).waitFor();
  await picture(page, 'environment-live');
}

/** Leaves the page at an Environment of a branch with a page and an API, both ready. */
async function deployBranch(page: Page): Promise<void> {
  const repository = newRepository();
  repository.commit(
    {
      'postern.yaml': `version: 1
services:
  web:
    build: { image: node:24, directory: web, command: mkdir dist && cp index.html dist, output: dist }
    static: {}
    routes: { /api: api }
  api:
    build: { image: node:24, directory: api }
    run: { command: node server.js, port: 8080 }
`,
      'web/index.html': '<!doctype html><title>Shop</title><h1>Shop</h1>',
      'api/server.js': "require('node:http').createServer((_, answer) => answer.end('ok')).listen(8080)",
    },
    'new-checkout',
  );
  await send(page, 'POST', '/repositories', {
    fullName: 'acme/shop',
    cloneUrl: repository.url,
    defaultBranch: 'main',
  });
  const stored = await send(page, 'GET', '/config/api-environments');
  await send(page, 'PUT', '/config/api-environments', { ...stored.data.policy, enabled: true }, stored.etag);
  const made = await send(page, 'POST', '/environments', {
    repository: 'acme/shop',
    branch: 'new-checkout',
    name: 'new-checkout',
  });
  await page.goto(`${program.origin}/environments/${made.data.id}`);
}

type Sent = { readonly etag: string | null; readonly data: { readonly id: string; readonly policy: object } };

/** A request of the signed-in page to the API. */
function send(page: Page, method: string, path: string, body?: object, etag: string | null = null) {
  return page.evaluate(
    async (sent): Promise<Sent> => {
      const answer = await fetch(`/api/v2${sent.path}`, {
        method: sent.method,
        headers: { 'content-type': 'application/json', ...(sent.etag && { 'if-match': sent.etag }) },
        ...(sent.body && { body: JSON.stringify(sent.body) }),
      });
      if (!answer.ok) throw new Error(await answer.text());
      const { data } = (await answer.json()) as Pick<Sent, 'data'>;
      return { etag: answer.headers.get('etag'), data };
    },
    { method, path, body, etag },
  );
}
