import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { zipOf } from '../archives/zip.ts';
import { administrator, freePorts, type Ports, type Program, startProgram } from '../faults/program.ts';
import { launch } from './real-ports.ts';

/** The way into a private site as Chromium goes it, on the embedded parts and plain http on loopback. */
let folder: string;
let ports: Ports;
let program: Program;
let browser: Browser;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-private-'));
  ports = await freePorts();
  program = await startProgram({ dataDir: folder, ports });
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  await program.end('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});

async function fillIn(page: Page): Promise<void> {
  await page.fill('input[name=email]', administrator.email);
  await page.fill('input[name=password]', administrator.password);
  await page.click('button');
}

async function signedIn(): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${program.origin}/auth/login`);
  await fillIn(page);
  await page.waitForURL(`${program.origin}/`);
  return { context, page };
}

const historyOf = (page: Page) => page.evaluate<number>('history.length');

const start = `<!doctype html><title>secret</title><link rel="stylesheet" href="/a.css"><p id="text">the secret page</p>
<script>
  document.title = 'script ran';
  navigator.serviceWorker.register('/sw.js').then(() => (document.title = 'worker'), () => (document.title = 'no worker'));
</script>`;

async function upload(page: Page): Promise<{ id: string; url: string; link: string }> {
  const parts = [
    { name: 'index.html', content: start },
    { name: 'a.css', content: 'p{color:rgb(1, 2, 3)}' },
    { name: 'sw.js', content: '1' },
    { name: 'deep/page.html', content: '<!doctype html><p id="text">deep</p>' },
  ];
  const bytes = zipOf(parts).toString('base64');
  const answer = await page.evaluate<{
    data: { id: string; url: string; link: string };
    error: unknown;
  }>(`(async () => {
    const sent = await fetch('/api/v2/sites?visibility=private', {
      method: 'POST',
      headers: { 'content-type': 'application/zip' },
      body: Uint8Array.from(atob('${bytes}'), (letter) => letter.charCodeAt(0)),
    });
    return await sent.json();
  })()`);
  expect(answer.error).toBeNull();
  return answer.data;
}

test('T25 T04 GR-04 a private site opens in Chromium, with its assets, no worker, and no trace in the history', {
  tags: 'core',
}, async () => {
  const { context, page } = await signedIn();
  const site = await upload(page);
  const addresses: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => void addresses.push(request.url()));
  page.on('console', (message) => void complaints.push(message.text()));
  const before = await historyOf(page);
  await page.goto(site.link);
  await page.waitForURL(site.url);
  await expect.poll(() => page.textContent('#text')).toBe('the secret page');
  await expect
    .poll(() => page.evaluate<string>("getComputedStyle(document.querySelector('p')).color"))
    .toBe('rgb(1, 2, 3)');
  await page.waitForFunction("document.title !== 'script ran' && document.title !== 'secret'");
  await expect.poll(() => page.title()).toBe('no worker');
  const cookies = await context.cookies(site.url);
  expect(cookies.map(({ name, sameSite, httpOnly, secure }) => [name, sameSite, httpOnly, secure])).toEqual(
    expect.arrayContaining([
      ['__Host-postern_browser', 'None', true, true],
      ['__Host-postern_grant', 'Lax', true, true],
    ]),
  );
  await expect.poll(() => page.evaluate<string>('document.cookie')).toBe('');
  // Every step on the way was a redirect or replaced itself.
  await expect.poll(() => historyOf(page)).toBe(before + 1);
  expect(addresses.join('\n')).not.toMatch(/code=/);

  // A deep link with the grant there is served at once; without it the browser comes back to where it wanted to go.
  await page.goto(`${site.url}deep/page`);
  await expect.poll(() => page.textContent('#text')).toBe('deep');
  await context.clearCookies({ name: '__Host-postern_grant' });
  await page.goto(`${site.url}deep/page?q=1`);
  await page.waitForURL(`${site.url}deep/page?q=1`);
  await expect.poll(() => page.textContent('#text')).toBe('deep');
  expect(complaints.filter((text) => /Content Security Policy|Refused/.test(text))).toEqual([]);
  await context.close();
});

test('a private address keeps its query and its fragment, with and without a sign-in and a grant', async () => {
  const { context, page } = await signedIn();
  const site = await upload(page);
  const address = `${site.url}deep/page?x=1&y=a%20b#/route?testId=7`;
  const arrives = async (at: Page, from = address, to = address) => {
    await at.goto(from);
    await at.waitForURL(to);
    await expect.poll(() => at.evaluate<string>('location.hash')).toBe('#/route?testId=7');
  };
  await arrives(page);
  await context.clearCookies({ name: '__Host-postern_grant' });
  // Leaves the document first: a new fragment alone loads nothing.
  await page.goto('about:blank');
  await arrives(page);

  for (const [from, to] of [
    [address, address],
    [`${site.link}#/route?testId=7`, `${site.url}#/route?testId=7`],
  ] as const) {
    const fresh = await browser.newContext();
    const other = await fresh.newPage();
    const complaints: string[] = [];
    other.on('console', (message) => void complaints.push(message.text()));
    await other.goto(from);
    await other.fill('input[name=email]', administrator.email);
    await other.fill('input[name=password]', 'not the password');
    await other.click('button');
    await other.getByRole('alert').waitFor();
    await fillIn(other);
    await other.waitForURL(to);
    await expect.poll(() => other.evaluate<string>('location.hash')).toBe('#/route?testId=7');
    expect(complaints.filter((text) => /Content Security Policy|Refused/.test(text))).toEqual([]);
    await fresh.close();
  }
  await context.close();
});

test('T06 another browser signs in first, and only the owner’s account gets in', async () => {
  const { context, page } = await signedIn();
  const site = await upload(page);
  const fresh = await browser.newContext();
  const other = await fresh.newPage();
  await other.goto(`${site.url}deep/page?q=1`);
  await fillIn(other);
  await other.waitForURL(`${site.url}deep/page?q=1`);
  await expect.poll(() => other.textContent('#text')).toBe('deep');
  await fresh.close();
  await context.close();
});

test.each([
  ['with scripts', true],
  ['without scripts', false],
])(
  'the link of a private site leads a browser that is not signed in through the form to the site, %s',
  async (_how, javaScriptEnabled) => {
    const { context, page } = await signedIn();
    const site = await upload(page);
    const fresh = await browser.newContext({ javaScriptEnabled });
    const visitor = await fresh.newPage();
    const complaints: string[] = [];
    visitor.on('console', (message) => void complaints.push(message.text()));
    await visitor.goto(site.link);
    await fillIn(visitor);
    // Without scripts the last step is a button.
    if (!javaScriptEnabled) await visitor.click('text=Open the site');
    await visitor.waitForURL(site.url);
    await expect.poll(() => visitor.textContent('#text')).toBe('the secret page');
    expect(complaints.filter((text) => /Content Security Policy|Refused/.test(text))).toEqual([]);
    await fresh.close();
    await context.close();
  },
);

test('T05 T29 a page elsewhere gets nothing by a form, a frame, an image or a fetch', {
  tags: 'core',
}, async () => {
  const { context, page } = await signedIn();
  const site = await upload(page);
  await page.goto(site.link);
  await page.waitForURL(site.url);
  const { url } = await upload(await elsewhere(context));
  const stranger = await context.newPage();
  await stranger.goto(url);
  await stranger.waitForURL(url);
  const found = await stranger.evaluate<{ image: string; fetched: unknown }>(`(async () => {
    const image = await new Promise((resolve) => {
      const element = new Image();
      element.addEventListener('load', () => resolve('loaded'));
      element.addEventListener('error', () => resolve('failed'));
      element.src = '${site.url}a.css';
    });
    const fetched = await fetch('${site.url}', { credentials: 'include' }).then(
      (answer) => answer.status,
      () => 'failed',
    );
    return { image, fetched };
  })()`);
  expect(found).toEqual({ image: 'failed', fetched: 'failed' });
  const posted = stranger.waitForResponse(`${site.url}.postern/redeem`);
  await stranger.evaluate(`{
    const form = document.createElement('form');
    form.method = 'post';
    form.action = '${site.url}.postern/redeem';
    form.innerHTML = '<input name="code" value="${'a'.repeat(43)}">';
    document.body.append(form);
    form.submit();
  }`);
  expect((await posted).status()).toBe(403);
  await context.close();
});

async function elsewhere(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${program.origin}/`);
  return page;
}

test('step 10 without scripts a button leads on; with cookies refused the browser is told so and not sent round', async () => {
  const { context, page } = await signedIn();
  const site = await upload(page);
  const plain = await browser.newContext({
    javaScriptEnabled: false,
    storageState: await context.storageState(),
  });
  const visitor = await plain.newPage();
  await visitor.goto(site.link);
  await expect.poll(() => visitor.textContent('h1')).toBe('Opening the site …');
  // As in a browser that keeps no cookies of content hosts.
  await plain.clearCookies({ name: '__Host-postern_browser' });
  await visitor.click('button');
  await visitor.waitForURL(`${site.url}.postern/redeem`);
  await expect.poll(() => visitor.textContent('h1')).toBe('Cookies are blocked');
  await visitor.getByRole('link', { name: 'Open the site again' }).click();
  await visitor.waitForURL(`${program.origin}/sites/open**`);
  await visitor.click('button');
  await visitor.waitForURL(site.url);
  await expect.poll(() => visitor.textContent('#text')).toBe('the secret page');
  await plain.close();
  await context.close();
});
