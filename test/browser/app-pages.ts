import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { BrowserContext, Page } from 'playwright-core';
import type { AxeResults } from 'axe-core';
import { onTestFailed } from 'vitest';

/** What the suites of the web app do with a page and ask of it. */

/**
 * A page, and everything it complains about: scripts that fail, and whatever the content security policy refuses. When the
 * test fails, what the page showed and asked for last is printed, because a time-out alone does not say why.
 */
export async function visit(context: BrowserContext): Promise<{ page: Page; complaints: string[] }> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => void complaints.push(message.text()));
  page.on('pageerror', (error) => void complaints.push(error.message));
  page.on('dialog', (dialog) => void complaints.push(`dialog: ${dialog.message()}`));
  const asked: string[] = [];
  page.on('response', (one) => void asked.push(`${one.status()} ${one.request().method()} ${one.url()}`));
  page.on(
    'requestfailed',
    (one) => void asked.push(`${one.failure()?.errorText} ${one.method()} ${one.url()}`),
  );
  onTestFailed(async () => {
    const shown = await page
      .locator('body')
      .innerText({ timeout: 2_000 })
      .catch((error: unknown) => String(error));
    const last = [page.url(), ...complaints, ...asked.slice(-15), shown.slice(0, 1_500)].join('\n');
    console.error(last.replaceAll(/app_(pat|svc|fed)_\w+/g, 'app_$1_…'));
  });
  return { page, complaints };
}

export async function signIn(page: Page, who: { email: string; password: string }): Promise<void> {
  await page.fill('input[name=email]', who.email);
  await page.fill('input[name=password]', who.password);
  await page.click('button[value="sign-in"]');
}

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds wrong with the page as it is now, one line each. */
export async function barriersOn(page: Page): Promise<string[]> {
  // A dialog gets its name a moment after it appears.
  await page.locator('[role=dialog]:not([aria-label]):not([aria-labelledby])').waitFor({ state: 'detached' });
  // As text, because the page's policy lets no script in; the debugger's own interface is not the page's.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate<AxeResults>(
    'axe.run(document, { resultTypes: ["violations"] })',
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
  );
}

/** Pixels by which the page is wider than the window. */
export async function overflowOf(page: Page): Promise<number> {
  return await page.evaluate<number>(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  );
}

/** Everything that a page may have left behind. */
export const traces = async (page: Page): Promise<string> =>
  JSON.stringify([
    await page.content(),
    page.url(),
    await page.context().storageState({ indexedDB: true }),
    await page.evaluate(
      'JSON.stringify([{ ...sessionStorage }, history.state, [...document.querySelectorAll("input,textarea")].map(({ value }) => value)])',
    ),
  ]);

export type NewKey = { name: string; preset?: string; where?: 'all' | readonly string[] };

/** Fills in the form for a new key and sends it. */
export async function fillIn(page: Page, { name, preset = 'Read everything', where = 'all' }: NewKey) {
  // The search of the page before is no field of a form.
  await page.locator('form').getByLabel('Name').fill(name);
  await page.getByRole('button', { name: preset }).click();
  if (where === 'all') return await page.getByLabel('All repositories').check();
  for (const one of where) {
    await page.getByRole('combobox', { name: 'Choose repositories' }).fill(one);
    await page.getByRole('option', { name: one }).click();
  }
}

export const create = (page: Page) => page.getByRole('button', { name: 'Create key' }).click();

/** The value in the dialog that shows it once. */
export async function valueShown(page: Page): Promise<string> {
  return await page.getByRole('dialog').getByLabel('Key', { exact: true }).inputValue();
}

export async function store(page: Page): Promise<void> {
  await page.getByLabel('I have stored it').check();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

/**
 * A clipboard as browsers have it, to be run before a page: without the API as on plain http, with permission denied,
 * with the old way shut as well, and as it is. What the old way copies is noted in `copied`.
 */
const noting = "document.addEventListener('copy', () => { globalThis.copied = getSelection().toString(); });";
const denied = `${noting} navigator.clipboard.writeText = () => Promise.reject(new DOMException('', 'NotAllowedError'));`;
export const clipboards = {
  absent: `${noting} Object.defineProperty(navigator, 'clipboard', { value: undefined });`,
  denied,
  hopeless: `${denied} document.execCommand = () => false;`,
  granted: noting,
} as const;
