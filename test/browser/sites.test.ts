import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { minute } from '../../src/core/clock.ts';
import type { Person } from '../harness.ts';
import { archiveOf, upload } from '../api/sites/uploads.ts';
import { openWorld, signIn, type World } from './real-ports.ts';
import {
  addressShown,
  atPage,
  chooseFile,
  chooseFolder,
  drop,
  forbidExtensions,
  type Folders,
  html,
  noise,
  openFolders,
  publish,
} from './site-pages.ts';

// Sites as their people meet them: real server, real gateway, Chromium.
let world: World;
let folders: Folders;
let root: Person;
let nell: Person;
let dev: Person;
let ada: Person;
let open: Awaited<ReturnType<typeof atPage>> | undefined;

beforeAll(async () => {
  world = await openWorld();
  folders = await openFolders();
  root = await world.h.person('Root', { admin: true });
  nell = await world.h.person('Nell');
  dev = await world.h.person('Dev');
  ada = await world.h.person('Ada');
  await forbidExtensions(world, ['exe']);
});
afterAll(async () => {
  await world.close();
  await folders.remove();
});
beforeEach(async () => {
  await world.advance(minute);
  world.seen.length = 0;
});
afterEach(async () => {
  await open?.context.close();
  open = undefined;
});

/** What the page complained of, whatever was done on it. */
const complaints = () => open?.complaints();

async function at(person: Person, path: string): Promise<Page> {
  open = await atPage(world, person, path);
  return open.page;
}

const bodies = () => world.seen.filter(({ method, url }) => method === 'PUT' && url.includes('/blobs'));
const files = { 'index.html': html('start'), 'about.html': html('about'), 'assets/app.js': 'let one = 1;' };
const mine = async (who: Person) =>
  (await world.call('GET', '/sites', { as: who, query: { mine: 'true' } })).data as {
    id: string;
    name: string;
  }[];

test('a new user drops a folder on the empty list and gets a working site', {
  tags: 'core',
}, async () => {
  const page = await at(nell, '/sites');
  await page.getByText('No sites yet').waitFor();
  await drop(page, await folders.make('my-first-site', { ...files, '.env': 'SECRET=1', '.DS_Store': 'x' }));
  await page.waitForURL(/\/sites\/new$/);
  await page.getByText('3 files').waitFor();
  await page.getByText('1 entry will not be sent').waitFor();
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('my-first-site');
  await expect.poll(() => page.getByLabel('Only me').isChecked()).toBe(true);
  await page.getByLabel('Everyone').check();
  await publish(page);
  const address = await addressShown(page);
  await page.getByText('3 files sent').waitFor();
  await world.advance(0);
  const visitor = await (await world.browser.newContext()).newPage();
  await visitor.goto(`${address}about`);
  await expect.poll(() => visitor.textContent('p')).toBe('about');
  expect((await visitor.goto(`${address}.env`))?.status()).toBe(404);
  await visitor.context().close();
  await page.getByRole('link', { name: 'Go to its page' }).waitFor();
  await page.waitForURL(/\/sites\/[a-z0-9]{10}$/);
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'my-first-site', exact: true }).waitFor();
  await page.getByRole('tab', { name: 'Versions' }).waitFor();
  expect(complaints()).toEqual([]);
});

test('a developer publishes a folder with one changed file: one body is sent; then rolls back and forward', {
  tags: 'core',
}, async () => {
  const made = await upload(world.h, dev, files, { visibility: 'public', name: 'App' });
  const page = await at(dev, `/sites/${made.data.id}`);
  await drop(page, await folders.make('app', { ...files, 'about.html': html('about us') }));
  await page.waitForURL(/tab=publish/);
  await publish(page);
  await addressShown(page);
  await page.getByText('1 file sent, 2 already there').waitFor();
  await page.getByText('0 files added, 1 changed, 0 removed').waitFor();
  expect(bodies()).toHaveLength(1);
  await page.getByRole('tab', { name: 'Versions' }).click();
  await page.getByRole('button', { name: 'Roll back to version 1' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('about.html').waitFor();
  await dialog.getByRole('button', { name: 'Make it live' }).click();
  await page.getByRole('button', { name: 'Roll forward to version 2' }).waitFor();
  await world.advance(0);
  const { body } = await world.h.open(`${made.data.url}about`);
  expect(body).toBe(files['about.html']);
  await page.getByRole('button', { name: 'Roll forward to version 2' }).click();
  await dialog.getByRole('button', { name: 'Make it live' }).click();
  await page.getByRole('button', { name: 'Roll back to version 1' }).waitFor();
  await page.getByRole('button', { name: 'Preview version 1' }).click();
  const preview = await page.getByRole('textbox', { name: 'Address of the preview' }).inputValue();
  await world.advance(0);
  expect((await world.h.open(`${preview}about`)).body).toBe(files['about.html']);
  expect(complaints()).toEqual([]);
});

test('an author publishes a private site, opens it by its link, sees its grants and ends them all', {
  tags: 'core',
}, async () => {
  const page = await at(ada, '/sites/new');
  await chooseFolder(page, await folders.make('plans', { 'index.html': html('my plans'), 'a.css': 'p{}' }));
  await publish(page);
  const link = await addressShown(page);
  expect(link).toContain('/s/');
  await world.advance(0);
  const reader = await page.context().newPage();
  await reader.goto(link);
  await reader.getByText('my plans').waitFor();
  await page.getByRole('link', { name: 'Go to its page' }).click();
  await page.getByRole('tab', { name: 'Access' }).click();
  await page.getByRole('heading', { name: 'It opens' }).waitFor();
  await page.getByText('Your sign-in is still valid').waitFor();
  await page.getByRole('link', { name: 'Change who sees it' }).click();
  await page.getByRole('button', { name: 'Make it public' }).waitFor();
  await page.goBack();
  const grant = page.getByRole('row', { name: 'Chrome on Linux' });
  await grant.getByText('Live').waitFor();
  await page.getByRole('button', { name: 'End all grants' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End all grants' }).click();
  await grant.getByText('Ended').waitFor();
  await world.advance(0);
  await expect.poll(() => reader.evaluate<number>("fetch('/a.css').then(({ status }) => status)")).toBe(401);
  expect(complaints()).toEqual([]);
});

test('errors are shown before anything is sent, one entry for each file, and no input is lost', async () => {
  const page = await at(ada, '/sites/new');
  await chooseFolder(
    page,
    await folders.make('bad', { ...files, 'run.exe': 'x', 'a\u200b.html': 'x', 'what\u202e.html': 'x' }),
  );
  const problems = page.getByRole('alert').getByRole('listitem');
  await problems.nth(2).waitFor();
  await expect
    .poll(async () => (await problems.allTextContents()).sort())
    .toEqual([
      expect.stringMatching(/^a.*contains an invisible character/),
      expect.stringMatching(/run\.exe ends in \.exe, which is not allowed here/),
      expect.stringMatching(/what.*contains an invisible character/),
    ]);
  await expect.poll(() => page.getByRole('button', { name: 'Publish', exact: true }).isDisabled()).toBe(true);
  expect(world.seen.filter(({ method }) => method !== 'GET')).toEqual([]);

  const { value } = await world.h.key(ada, { name: 'slipped in' });
  await page.getByLabel('Name').fill('Typed with care');
  await page.getByRole('button', { name: 'Choose another' }).click();
  const leaky = {
    ...files,
    'about.html': `<p>${value}</p>`,
    'deep/config.js': `let k = "${value}";`,
  };
  await chooseFolder(page, await folders.make('leaky', leaky));
  await publish(page);
  await page.getByText('The files contain an API key').waitFor();
  await page.getByRole('link', { name: 'Revoke it' }).waitFor();
  await expect
    .poll(async () => (await problems.allTextContents()).sort())
    .toEqual([
      expect.stringMatching(/^about\.html .*API key/),
      expect.stringMatching(/^deep\/config\.js .*API key/),
    ]);
  await expect.poll(() => page.content()).not.toContain(value);
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('Typed with care');
  expect((await mine(ada)).map(({ name }) => name)).not.toContain('Typed with care');

  await page.getByRole('button', { name: 'Choose another' }).click();
  await chooseFolder(page, await folders.make('leaky', files));
  await publish(page);
  await addressShown(page);
  await page.getByRole('heading', { name: 'Typed with care is live' }).waitFor();
  expect(complaints()).toEqual([]);
});

test('one button excludes the named unpublishable files, and the rest goes live', async () => {
  const page = await at(ada, '/sites/new');
  await chooseFolder(page, await folders.make('mixed', { ...files, 'run.exe': 'x', 'a/tool.exe': 'x' }));
  await page.getByText('Fix 2 problems before publishing').waitFor();
  await page.getByRole('button', { name: 'Publish without these 2 files' }).click();
  const leftOut = page.getByRole('alert').filter({ hasText: '2 entries will not be sent' });
  await expect
    .poll(async () => (await leftOut.getByRole('listitem').allTextContents()).sort())
    .toEqual([
      'a/tool.exe ends in .exe, which is not allowed here',
      'run.exe ends in .exe, which is not allowed here',
    ]);
  await page.getByLabel('Name').fill('Mixed');
  await publish(page);
  await addressShown(page);
  await page.getByText('3 files,').waitFor();
  expect(complaints()).toEqual([]);
});

const headOf = async (address: string) => {
  const { statusCode, headers } = await world.h.open(address);
  return [statusCode, headers['location']];
};

test('a folder without index.html causes a warning before it is sent, and a start page can be chosen', async () => {
  const page = await at(ada, '/sites/new');
  const pages = { 'guide/report one.html': html('one'), 'summary.html': html('two'), 'data.json': '{}' };
  await chooseFolder(page, await folders.make('reports', { ...pages, _redirects: '/old /summary\n' }));
  await page
    .getByText('Unless _redirects has a rule for “/”, the site’s address will show “Not found”.')
    .waitFor();
  await page.getByRole('combobox', { name: 'Start page' }).click();
  await page.getByRole('option', { name: 'guide/report one.html' }).click();
  await page
    .getByText('The line “/ /guide/report%20one.html 302” is added to the file _redirects.')
    .waitFor();
  await page.getByLabel('Everyone').check();
  await publish(page);
  const address = await addressShown(page);
  expect(await headOf(address)).toEqual([302, '/guide/report%20one.html']);
  expect(await headOf(`${address}old`)).toEqual([301, '/summary']);
  await expect.poll(() => page.getByText('There is no start page').count()).toBe(0);
  expect(complaints()).toEqual([]);
});

test('for an archive without index.html the check warns, and after publishing a start page can be chosen', async () => {
  const page = await at(ada, '/sites/new');
  const { bytes } = archiveOf({ 'summary.html': html('two'), _redirects: '/old /summary\n' });
  await chooseFile(page, { name: 'reports.zip', mimeType: 'application/zip', buffer: bytes });
  await page.getByLabel('Everyone').check();
  await page.getByRole('button', { name: 'Check only' }).click();
  await page.getByText('It can be published, with a warning').waitFor();
  await page.getByText('add the line “/ /summary.html 302” to the file _redirects').waitFor();
  await publish(page);
  const address = await addressShown(page);
  expect(await headOf(address)).toEqual([404, undefined]);
  await page.getByRole('combobox', { name: 'Start page' }).click();
  await page.getByRole('option', { name: 'summary.html' }).click();
  await page.getByRole('button', { name: 'Publish with this start page' }).click();
  await page.getByText('A new version is live').waitFor();
  await world.h.app.services.feed.poll();
  expect(await headOf(address)).toEqual([302, '/summary.html']);
  expect(await headOf(`${address}old`)).toEqual([301, '/summary']);
  expect(complaints()).toEqual([]);
});

test('a folder whose site is in dist/ is understood', async () => {
  const page = await at(ada, '/sites/new');
  const project = {
    'dist/index.html': html('built'),
    'dist/app.js': '1',
    'README.md': 'read',
    'src/app.js': '2',
  };
  await chooseFolder(page, await folders.make('project', project));
  await page.getByRole('button', { name: 'Publish dist/ alone' }).click();
  await page.getByText('2 files').waitFor();
  await page.getByText('Names and sizes are within the limits').waitFor();
  expect(complaints()).toEqual([]);
});

test('a cancelled upload stops at once, and leaves nothing', async () => {
  const before = await mine(ada);
  const page = await at(ada, '/sites/new');
  await page.route('**/blobs', () => new Promise(() => undefined));
  await chooseFolder(page, await folders.make('cancelled', { 'index.html': html('cancelled') }));
  await publish(page);
  await page.getByRole('heading', { name: 'Uploading' }).waitFor();
  // Going elsewhere asks first.
  await page.getByRole('link', { name: 'API keys' }).click();
  await page.getByRole('button', { name: 'Stay here' }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('The upload was stopped').waitFor();
  await world.answered(({ method }) => method === 'DELETE');
  expect(await mine(ada)).toEqual(before);
  expect(bodies()).toEqual([]);
  expect(complaints()).toEqual([]);
});

test('after a reload in the middle the same folder resumes with the missing files', async () => {
  const page = await at(dev, '/sites/new');
  const large = { 'index.html': noise(9_000_000), 'two.pdf': noise(9_000_000) };
  const folder = await folders.make('large', large);
  let sent = 0;
  await page.route('**/blobs', async (route) => {
    sent += 1;
    if (sent === 1) await route.continue();
  });
  await page.getByLabel('Everyone').check();
  await chooseFolder(page, folder);
  await publish(page);
  await world.answered(({ method, url }) => method === 'PUT' && url.endsWith('/blobs'));
  await page.reload();
  await page.getByText('An upload is not finished').waitFor();
  await page.unroute('**/blobs');
  await page.getByLabel('Everyone').check();
  await chooseFolder(page, folder);
  await publish(page);
  await addressShown(page);
  await page.getByText('1 file sent, 1 already there').waitFor();
  expect((await mine(dev)).filter(({ name }) => name === 'large')).toHaveLength(1);
  expect(complaints()).toEqual([]);
});

test('uploads in two tabs do not interfere, whichever is cancelled, fails or finishes', async () => {
  const hold = (page: Page) => page.route('**/blobs', () => new Promise(() => undefined));
  const send = async (page: Page, name: string, content = html(name)) => {
    await page.bringToFront();
    await chooseFolder(page, await folders.make(name, { 'index.html': content }));
    await publish(page);
  };
  const named = async (name: string) => (await mine(ada)).filter((one) => one.name === name).length;
  const first = await at(ada, '/sites/new');
  const second = await first.context().newPage();
  await second.goto(`${world.uiUrl}/sites/new`);
  for (const page of [first, second]) await hold(page);
  await send(first, 'tab one');
  await first.getByRole('heading', { name: 'Uploading' }).waitFor();
  await send(second, 'tab two');
  await second.getByRole('heading', { name: 'Uploading' }).waitFor();
  await first.getByRole('button', { name: 'Cancel' }).click();
  await world.answered(({ method }) => method === 'DELETE');
  await expect.poll(async () => [await named('tab one'), await named('tab two')]).toEqual([0, 1]);

  // The second is broken off; the first finishes one upload and is refused another.
  await second.reload();
  await second.getByText('the folder tab two').waitFor();
  await first.unroute('**/blobs');
  await first.bringToFront();
  await publish(first);
  await addressShown(first);
  await first.getByRole('button', { name: 'Publish something else' }).click();
  await first.getByText('the folder tab two').waitFor();
  const { value } = await world.h.key(ada, { name: 'in a tab' });
  await send(first, 'leaky tab', value);
  await first.getByText('The files contain an API key').waitFor();
  await second.unroute('**/blobs');
  await second.reload();
  await second.getByText('the folder tab two').waitFor();
  await send(second, 'tab two');
  await addressShown(second);
  await expect
    .poll(async () => [await named('tab one'), await named('tab two'), await named('leaky tab')])
    .toEqual([1, 1, 0]);
  expect(complaints()).toEqual([]);
});

test('a session that ends during an upload loses nothing: after a new sign-in, the upload resumes', async () => {
  const page = await at(dev, '/sites/new');
  await chooseFolder(page, await folders.make('long work', { 'index.html': html('long work') }));
  await page.getByLabel('Name').fill('Long work');
  await page.context().clearCookies();
  await publish(page);
  await page.getByText('Sign in again in another tab').first().waitFor();
  const resume = page.getByRole('button', { name: 'Resume the upload' });
  await resume.waitFor();
  const other = await page.context().newPage();
  await signIn(other, dev, world.uiUrl);
  await resume.click();
  await addressShown(page);
  await page.getByRole('heading', { name: 'Long work is live' }).waitFor();
  expect(complaints()).toEqual([]);
});

test('a dropped folder that takes long shows its progress and can be cancelled, and an unreadable one says so', async () => {
  const page = await at(dev, '/sites/new');
  // The first hundred entries come; the next ones never do, or fail.
  await page.evaluate(`{
    const { webkitGetAsEntry } = DataTransferItem.prototype;
    globalThis.further = 'never';
    DataTransferItem.prototype.webkitGetAsEntry = function () {
      const entry = webkitGetAsEntry.call(this);
      const reader = entry.createReader();
      let asked = 0;
      const readEntries = (done, fail) => {
        asked += 1;
        if (asked === 1) reader.readEntries(done, fail);
        else if (globalThis.further === 'fails') fail(new DOMException('gone', 'NotReadableError'));
      };
      entry.createReader = () => ({ readEntries });
      return entry;
    };
  }`);
  const many = Object.fromEntries(Array.from({ length: 120 }, (_, at_) => [`page-${at_}.html`, 'x']));
  const folder = await folders.make('many', many);
  await drop(page, folder);
  await page.getByText('Reading the folder: 100 files').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('Reading the folder').waitFor({ state: 'detached' });
  await page.evaluate("globalThis.further = 'fails'");
  await drop(page, folder);
  await page.getByRole('alert').getByText('could not be read').waitFor();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByText('Drop a folder anywhere').waitFor();
  expect(complaints()).toEqual([]);
});

test('a single dropped page becomes a site, and its new name is shown before and after', async () => {
  const page = await at(dev, '/sites/new');
  await drop(page, `${await folders.make('single', { 'hello.html': html('hello') })}/hello.html`);
  await page.getByLabel('Everyone').check();
  await expect.poll(() => page.getByLabel('Name').inputValue()).toBe('hello');
  await page.getByText('It is published as index.html').waitFor();
  await publish(page);
  const address = await addressShown(page);
  await page.getByText('hello.html became index.html').waitFor();
  await world.advance(0);
  expect((await world.h.open(address)).body).toBe(html('hello'));
  expect(complaints()).toEqual([]);
});

test('after a lost connection the upload keeps its progress and resumes by itself', async () => {
  const page = await at(dev, '/sites/new');
  let tries = 0;
  let isCut = true;
  await page.route('**/blobs', async (route) => {
    tries += 1;
    await (tries > 1 && isCut ? route.abort('connectionreset') : route.continue());
  });
  const two = { 'index.html': noise(9_000_000), 'two.pdf': noise(9_000_000) };
  await chooseFolder(page, await folders.make('shaky', two));
  await publish(page);
  await page.getByRole('heading', { name: 'Waiting to retry' }).waitFor();
  await expect
    .poll(async () => Number(await page.getByRole('progressbar').getAttribute('aria-valuenow')))
    .toBeGreaterThan(40);
  isCut = false;
  await addressShown(page);
  expect(bodies()).toHaveLength(2);
  expect(complaints()).toEqual([]);
});

test('an interrupted archive starts again, and says so', async () => {
  const page = await at(dev, '/sites/new');
  await page.route('**/api/v2/sites?*', async (route) => {
    await (route.request().method() === 'POST' ? route.abort('connectionreset') : route.continue());
  });
  const zip = { name: 'broken off.zip', mimeType: 'application/zip', buffer: archiveOf(files).bytes };
  await chooseFile(page, zip);
  await publish(page);
  await page.getByText('The server could not be reached.').waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Resume the upload' }).count()).toBe(0);
  await page.unroute('**/api/v2/sites?*');
  await page.getByRole('button', { name: 'Try again from the beginning' }).click();
  await addressShown(page);
  expect(complaints()).toEqual([]);
});

test('an archive is checked without being kept, then published', async () => {
  const before = await mine(dev);
  const page = await at(dev, '/sites/new');
  const zip = { name: 'handbook.zip', mimeType: 'application/zip', buffer: archiveOf(files).bytes };
  await chooseFile(page, zip);
  await page
    .getByText('The size is within the limit. The server also checks the names and files inside')
    .waitFor();
  await page.getByRole('button', { name: 'Check only' }).click();
  await page.getByText('The check found no problems').waitFor();
  expect(await mine(dev)).toEqual(before);
  await publish(page);
  await addressShown(page);
  // The page has another subject now, and screen readers announce it.
  const focused = () =>
    page.evaluate<string>('document.activeElement.tagName + document.activeElement.textContent');
  await expect
    .poll(async () => [await focused(), await page.title()])
    .toEqual(['H1handbook is live', 'handbook is live · Postern']);
  await page.getByRole('button', { name: 'Publish something else' }).click();
  await page.getByText('Drop a folder anywhere').waitFor();
  await expect.poll(() => focused()).toBe('H1New site');
  expect(complaints()).toEqual([]);
});

test('a site of a service key says why a person cannot change it', async () => {
  const robot = await world.h.serviceKey({ name: 'deploy robot', scopes: ['sites:write'] });
  const made = await upload(world.h, robot, files, { name: 'Robot docs' });
  const page = await at(dev, '/sites?whose=all');
  await page.getByRole('link', { name: 'Robot docs' }).click();
  await page.getByText('Owner: Key deploy robot').waitFor();
  await page.getByRole('tab', { name: 'Settings' }).click();
  const remove = page.getByRole('button', { name: 'Delete this site' });
  await expect.poll(() => remove.getAttribute('aria-disabled')).toBe('true');
  await remove.click({ force: true });
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  await expect
    .poll(() => page.getByText('Only the service key that created this site').count())
    .toBeGreaterThan(2);
  await page.getByRole('tab', { name: 'Publish' }).click();
  await page.getByText('You cannot publish to this site').waitFor();
  await page.goto(`${world.uiUrl}/sites/${made.data.id}?tab=files`);
  await page.getByRole('link', { name: 'Download assets/app.js' }).waitFor();
  expect(complaints()).toEqual([]);
});

test('a site is renamed, made public, extended, deleted and restored, each with its consequences explained', {
  tags: 'core',
}, async () => {
  const { data } = await upload(world.h, ada, files, { name: 'Draft', ttlHours: '24' });
  const page = await at(ada, `/sites/${data.id}?tab=settings`);
  await page.getByLabel('Name').fill('Final');
  await page.getByRole('button', { name: 'Rename' }).click();
  await page.getByRole('heading', { name: 'Final', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Make it public' }).click();
  await page.getByText('The current address stops working for everyone').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Make it public' }).click();
  await page.getByRole('heading', { name: 'Public: everyone sees it' }).waitFor();
  const moved = (await world.call('GET', `/sites/${data.id}`, { as: ada })).data;
  expect(moved.url).not.toBe(data.url);
  await page.getByRole('tab', { name: 'Overview' }).click();
  await page.getByText('Expires soon').waitFor();
  await page.getByRole('button', { name: /^Extend to/ }).click();
  await page.getByText('Expires soon').waitFor({ state: 'detached' });
  await page.getByRole('tab', { name: 'Settings' }).click();
  await page.getByRole('button', { name: 'Delete this site' }).click();
  await page.getByText('For 7 days you can restore it').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete it' }).click();
  await page.getByText('The site is already deleted.').waitFor();
  await world.advance(0);
  expect((await world.h.open(moved.url)).statusCode).toBe(404);
  await page.getByRole('button', { name: 'Restore', exact: true }).click();
  await page.getByRole('button', { name: 'Delete this site' }).waitFor();
  await page.getByText('This site is deleted').waitFor({ state: 'detached' });
  await page.getByRole('tab', { name: 'Overview' }).click();
  await page.getByRole('link', { name: 'Open the site' }).waitFor();
  expect(complaints()).toEqual([]);
});

test('an administrator takes a site down with a reason for its owner, and reinstates it, without seeing its content', async () => {
  const { data } = await upload(world.h, dev, files, { name: 'Reported', visibility: 'public' });
  const page = await at(root, `/sites/${data.id}?tab=settings`);
  await page.getByLabel('Reason').fill('Phishing, reported by the bank');
  await page.getByRole('button', { name: 'Take it down' }).click();
  await page.getByRole('heading', { name: 'There is no such site' }).waitFor();
  await world.advance(0);
  expect((await world.h.open(data.url)).statusCode).toBe(404);
  const owner = await atPage(world, dev, `/sites/${data.id}`);
  await owner.page.getByText('Phishing, reported by the bank').waitFor();
  await owner.context.close();
  await page.getByLabel('Reason').fill('The page was cleaned');
  await page.getByRole('button', { name: 'Reinstate it' }).click();
  await page.getByRole('heading', { name: 'Reported' }).waitFor();
  expect(complaints()).toEqual([]);
});

async function switchSites(enabled: boolean): Promise<void> {
  const { data, headers } = await world.call('GET', '/config/sites', { as: root });
  const options = { as: root, headers: { 'if-match': headers['etag'] ?? '' } };
  await world.call('PUT', '/config/sites', { ...options, body: { ...data.config, enabled } });
}

test('with Sites switched off every page of Sites says only that', async () => {
  await switchSites(false);
  const page = await at(dev, '/sites');
  for (const path of ['/sites', '/sites/new', '/sites/k3v9x0q2m7']) {
    await page.goto(`${world.uiUrl}${path}`);
    await page.getByText('Sites is switched off').waitFor();
  }
  await switchSites(true);
  await page.goto(`${world.uiUrl}/sites`);
  await page.getByRole('table').waitFor();
  expect(complaints()).toEqual([]);
});

/** Makes 20 requests one after another. Meanwhile a page that repeats a request without end sends about as many. */
const askOften = (page: Page) =>
  page.evaluate(
    "(async () => { for (let at = 0; at < 20; at += 1) await fetch('/api/v2/auth/context'); })()",
  );

test('with Sites switched off the first page works without them and queries once', async () => {
  const asked = () => world.seen.filter(({ url }) => url.includes('/api/v2/sites?')).length;
  const shows = async (person: Person, words: string) => {
    world.seen.length = 0;
    const page = await at(person, '/');
    await page.getByRole('link', { name: words }).waitFor();
    await page.getByText('of 2 done').waitFor();
    await expect.poll(() => page.getByText('Publish a site').count()).toBe(0);
    await askOften(page);
    expect(asked()).toBeLessThan(6);
    expect(complaints()).toEqual([]);
    await open?.context.close();
  };
  await switchSites(false);
  await shows(dev, 'Sites is switched off');
  await switchSites(true);
});

test('while sites cannot be counted, the first page says so and shows everything else', async () => {
  const page = await at(dev, '/settings/keys');
  let asked = 0;
  await page.route('**/api/v2/sites?*', async (route) => {
    asked += 1;
    await route.fulfill({ status: 400, body: '' });
  });
  await page.goto(`${world.uiUrl}/`);
  await page.getByRole('link', { name: 'Your sites could not be counted' }).waitFor();
  await page.getByRole('heading', { name: 'Next to expire' }).waitFor();
  await askOften(page);
  expect(asked).toBeLessThan(6);
});
