import type { Page } from 'playwright-core';
import { signIn } from '../test/browser/app-pages.ts';
import { openProgram } from '../test/browser/real-ports.ts';
import type { BenchOptions, Figure } from './figures.ts';

/**
 * The web app's budget, in Lighthouse's metrics for the first load of each page: requests, bytes transferred, first and
 * largest contentful paint, layout shift, and blocking time. Chromium, a cold cache, and a processor slowed to half its speed.
 */
export async function uiBudget({ quick }: BenchOptions): Promise<Figure[]> {
  const program = await openProgram();
  const person = { name: 'Ada', email: 'ada@example.com', password: 'correct horse battery staple' };
  try {
    const entrance = await program.browser.newContext();
    const first = await entrance.newPage();
    await first.goto(program.setupLink);
    for (const [field, value] of Object.entries(person)) await first.fill(`input[name=${field}]`, value);
    await first.click('button');
    await first.waitForSelector('input[autocomplete="current-password"]');
    await signIn(first, person);
    await first.getByText('First steps').waitFor();
    const storageState = await entrance.storageState();

    const paths = quick
      ? ['/']
      : ['/', '/settings/keys', '/settings/keys/new', '/sites', '/environments', '/admin', '/admin/audit'];
    const figures: Figure[] = [];
    for (const path of paths) {
      const context = await program.browser.newContext({
        storageState,
        viewport: { width: 1280, height: 800 },
      });
      const page = await context.newPage();
      figures.push(...(await costOf(page, program.origin, path)));
      await context.close();
    }
    return figures;
  } finally {
    await program.close();
  }
}

type Seen = {
  readonly firstMs: number;
  readonly paintedMs: number;
  readonly shift: number;
  readonly blockedMs: number;
};

/** Records from the first moment on: the first and the largest paint, layout shifts, and tasks of more than 50 ms. */
const watching = `
  window.seen = { firstMs: 0, paintedMs: 0, shift: 0, blockedMs: 0 };
  const watch = (type, note) => new PerformanceObserver((list) => list.getEntries().forEach(note)).observe({ type, buffered: true });
  watch('paint', ({ name, startTime }) => { if (name === 'first-contentful-paint') seen.firstMs = startTime; });
  watch('largest-contentful-paint', ({ startTime }) => { seen.paintedMs = startTime; });
  watch('layout-shift', ({ value, hadRecentInput }) => { if (!hadRecentInput) seen.shift += value; });
  watch('longtask', ({ duration }) => { seen.blockedMs += duration - 50; });`;

async function costOf(page: Page, origin: string, path: string): Promise<Figure[]> {
  const wire = { requests: 0, script: 0, all: 0 };
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Network.enable');
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: 2 });
  const kinds = new Map<string, string>();
  devtools.on('Network.requestWillBeSent', () => void (wire.requests += 1));
  devtools.on('Network.responseReceived', ({ requestId, type }) => void kinds.set(requestId, type));
  devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    wire.all += encodedDataLength;
    if (kinds.get(requestId) === 'Script') wire.script += encodedDataLength;
  });
  await page.addInitScript(watching);
  await page.goto(`${origin}${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.waitForLoadState('networkidle');
  const { firstMs, paintedMs, shift, blockedMs } = await page.evaluate<Seen>('seen');
  return [
    // Each card of the start page and of the overview asks for its own part.
    figure(path, 'first load', wire.requests, 'requests', ['/', '/admin'].includes(path) ? 25 : 15),
    figure(path, 'script, compressed', wire.script / 1024, 'KiB', 350),
    figure(path, 'everything, compressed', wire.all / 1024, 'KiB', 450),
    figure(path, 'first part painted', firstMs / 1000, 's', 1),
    figure(path, 'largest part painted', paintedMs / 1000, 's', 2.5),
    figure(path, 'layout shift', shift, '', 0.1),
    figure(path, 'time blocked', blockedMs, 'ms', 600),
  ];
}

function figure(path: string, what: string, value: number, unit: string, most: number): Figure {
  const limit = `≤ ${most} ${unit}`.trim();
  return {
    id: 'UI',
    what: `${path}: ${what}`,
    ours: `${value.toFixed(unit === '' ? 3 : 1)} ${unit}`.trim(),
    reference: '–',
    ratio: value,
    floor: limit,
    goal: limit,
    passes: value <= most,
  };
}
