import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { signIn } from '../test/browser/app-pages.ts';
import { launch } from '../test/browser/real-ports.ts';
import { administrator, freePorts, startProgram } from '../test/faults/program.ts';
import { openDatabase } from '../src/platform/database/database.ts';
import { sql } from '../src/platform/database/sql.ts';
import { embeddedDatabase } from '../src/platform/database/embedded.ts';
import { type BenchOptions, type Figure, sideBySide } from './figures.ts';
import { fillKeys, fillSites } from './rows.ts';

/**
 * How long a person with very many keys and sites waits in the web app, against one with two pages of each, in the same
 * installation. Measured in Chromium, from the app's request for a list until its rows are visible.
 */
export async function uiLists({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bench-lists-'));
  const installation = { dataDir: folder, ports: await freePorts() };
  const browser = await launch();
  try {
    const [keys, sites] = quick ? [100, 100] : [1_000, 10_000];
    const people = [
      { ...administrator, keys, sites, from: 1_000 },
      { email: 'bo@example.com', password: 'correct horse battery staple', keys: 40, sites: 40, from: 100 },
    ] as const;
    const before = await startProgram(installation);
    const entrance = await visit(browser, before.origin, people[0]);
    const { status } = await inApp(entrance, 'POST', '/users', { ...people[1], name: 'Bo' });
    if (status !== 201) throw new Error(`No second account: ${status}.`);
    await before.end('SIGTERM');
    await fill(join(folder, 'database'), people);

    const program = await startProgram(installation);
    const figures: Figure[] = [];
    try {
      const [many, few] = await Promise.all(people.map((one) => visit(browser, program.origin, one)));
      if (many === undefined || few === undefined) throw new Error('Both were asked in.');
      const rounds = quick ? 1 : 15;
      for (const list of lists) {
        const [mine, least] = people;
        for (const step of stepsOf(list)) {
          const timed = await sideBySide(
            rounds,
            () => step.take(many, mine),
            () => step.take(few, least),
          );
          figures.push(
            figure(`${list.path}: ${step.what}, ${mine[list.of].toLocaleString('en')} rows`, timed),
          );
        }
      }
    } finally {
      await program.end('SIGTERM');
    }
    return figures;
  } finally {
    await browser.close();
    await rm(folder, { recursive: true, force: true });
  }
}

type Whose = {
  readonly email: string;
  readonly password: string;
  readonly keys: number;
  readonly sites: number;
  /** Number of the first row. */
  readonly from: number;
};

type List = { readonly path: string; readonly of: 'keys' | 'sites'; readonly asks: RegExp };

const lists: readonly List[] = [
  { path: '/settings/keys', of: 'keys', asks: /\/api\/v2\/me\/tokens\?/ },
  { path: '/sites', of: 'sites', asks: /\/api\/v2\/sites\?/ },
];

const perPage = 20;
/** In the lists of keys every tenth number is a service key, which has no owner. */
const lastOf = ({ from }: Whose, count: number, of: List['of']) =>
  of === 'keys' ? from + Math.ceil((count * 10) / 9) : from + count - 1;

async function fill(dataDir: string, people: readonly Whose[]): Promise<void> {
  const embedded = embeddedDatabase({ dataDir, watchdogMs: 600_000 });
  await embedded.start();
  const database = openDatabase(embedded.pool);
  for (const whose of people) {
    const owner = sql`(select user_id from accounts where email = ${whose.email})`;
    await fillKeys(database, whose.from, lastOf(whose, whose.keys, 'keys'), owner);
    await fillSites(database, whose.from, lastOf(whose, whose.sites, 'sites'), owner);
  }
  await database.close();
}

/** Signs in, in a new browser profile. */
async function visit(
  browser: Browser,
  origin: string,
  whose: Pick<Whose, 'email' | 'password'>,
): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${origin}/auth/login`);
  await signIn(page, whose);
  await page.getByText('First steps').waitFor();
  return page;
}

function inApp(
  page: Page,
  method: string,
  path: string,
  body: { email: string; password: string; name: string },
) {
  const { email, password, name } = body;
  const sent = JSON.stringify({ method, path, body: JSON.stringify({ email, password, name }) });
  return page.evaluate<{ status: number }>(
    `(({ method, path, body }) => fetch('/api/v2' + path, { method, body, headers: { 'content-type': 'application/json' } })
      .then(({ status }) => ({ status })))(${sent})`,
  );
}

type Step = { readonly what: string; readonly take: (page: Page, whose: Whose) => Promise<number> };

function stepsOf({ path, of, asks }: List): Step[] {
  const open = async (page: Page, whose: Whose) => {
    const address = new URL(path, page.url()).href;
    return await timed(page, asks, firstOf(whose, 0), () => page.goto(address));
  };
  /** The newest rows have the highest numbers, so a page starts with them. */
  const firstOf = (whose: Whose, skipped: number) => {
    const numbers: number[] = [];
    for (let at = lastOf(whose, whose[of], of); numbers.length <= skipped; at -= 1)
      if (of === 'sites' || at % 10 !== 0) numbers.push(at);
    return `${of === 'keys' ? 'key' : 'site'} ${numbers.at(-1)}`;
  };
  return [
    { what: 'opened', take: open },
    {
      what: 'second page',
      async take(page, whose) {
        await open(page, whose);
        return await timed(page, asks, firstOf(whose, perPage), () =>
          page.getByRole('button', { name: 'Page 2', exact: true }).click(),
        );
      },
    },
    {
      what: 'in the order of names',
      async take(page, whose) {
        await open(page, whose);
        const first = `${of === 'keys' ? 'key' : 'site'} ${whose.from + (of === 'keys' ? 1 : 0)}`;
        return await timed(page, asks, first, () =>
          of === 'keys'
            ? page.getByLabel('Order').selectOption('name')
            : page.getByRole('button', { name: 'Name' }).click(),
        );
      },
    },
    {
      what: 'searched',
      async take(page, whose) {
        await open(page, whose);
        const found = `${of === 'keys' ? 'key' : 'site'} ${whose.from + 3}`;
        return await timed(page, asks, found, () => page.getByRole('searchbox').fill(found));
      },
    },
  ];
}

/**
 * Milliseconds from the first request that `step` causes until `row` is visible and the page has no more rows than a page
 * holds.
 */
async function timed(page: Page, asks: RegExp, row: string, step: () => Promise<unknown>): Promise<number> {
  const [asked] = await Promise.all([page.waitForRequest(asks).then(() => performance.now()), step()]);
  await page.getByRole('link', { name: row, exact: true }).waitFor();
  const shown = performance.now() - asked;
  const rows = await page.locator('tbody tr').count();
  if (rows > perPage) throw new Error(`${page.url()} shows ${rows} rows.`);
  return shown;
}

function figure(
  what: string,
  { ours, reference, ratio }: { ours: number; reference: number; ratio: number },
): Figure {
  return {
    id: 'UI',
    what,
    ours: `${ours.toFixed(0)} ms`,
    reference: `${reference.toFixed(0)} ms with 40`,
    ratio,
    floor: '≤ 1.3',
    goal: '≤ 1.3',
    passes: ratio <= 1.3,
  };
}
