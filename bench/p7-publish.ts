import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchOptions, type Figure, sideBySide } from './figures.ts';
import { serverCore } from './load.ts';
import { startServer } from './server-process.ts';
import { archiveOf, residentMib, send, siteFiles } from './site-files.ts';

/**
 * P7: time to send and publish a ZIP of 1,000 files and 50 MB, against `unzip` to disk; and the growth of the server's
 * memory.
 */
export async function publish({ quick }: BenchOptions): Promise<Figure[]> {
  if (!hasUnzip()) {
    console.error('bench: p7 needs unzip (Debian: unzip); skipped.');
    return [];
  }
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-zip-'));
  const archive = join(folder, 'site.zip');
  const server = await startServer();
  // Compressed forms are made after a publish, so they are not part of it.
  await server.restJobs();
  const [key = ''] = server.keys;
  let body: Buffer = Buffer.alloc(0);
  let growth = 0;
  const next = () => {
    body = archiveOf(siteFiles(quick ? 50 : 1_000));
    writeFileSync(archive, body);
  };
  try {
    await send(`${server.address}/api/v2/sites`, 'POST', key, { type: 'application/json', body: '{}' });
    const measured = await sideBySide(
      quick ? 1 : 7,
      async () => {
        next();
        const idle = residentMib(server.pid);
        let most = idle;
        const watch = setInterval(() => (most = Math.max(most, residentMib(server.pid))), 20);
        const startedAt = performance.now();
        await send(`${server.address}/api/v2/sites`, 'POST', key, { type: 'application/zip', body });
        const seconds = (performance.now() - startedAt) / 1_000;
        clearInterval(watch);
        growth = Math.max(growth, most - idle);
        return seconds;
      },
      async (round) => {
        next();
        const startedAt = performance.now();
        await unzip(archive, join(folder, String(round)));
        const seconds = (performance.now() - startedAt) / 1_000;
        rmSync(join(folder, String(round)), { recursive: true });
        return seconds;
      },
    );
    return [
      {
        id: 'P7',
        what: 'publish a ZIP of 1,000 files, 50 MB, against unzip to disk',
        ours: `${measured.ours.toFixed(2)} s`,
        reference: `${measured.reference.toFixed(2)} s`,
        ratio: measured.ratio,
        floor: '≤ 2.5',
        goal: '≤ 2.5',
        passes: measured.ratio <= 2.5,
      },
      {
        id: 'P7',
        what: 'memory above idle while it publishes',
        ours: `${growth.toFixed(0)} MiB`,
        reference: '–',
        ratio: growth / 64,
        floor: '≤ 64 MiB',
        goal: '≤ 64 MiB',
        passes: growth <= 64,
      },
    ];
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function hasUnzip(): boolean {
  try {
    execFileSync('unzip', ['-v'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function unzip(archive: string, target: string): Promise<void> {
  const child = spawn('taskset', ['-c', serverCore, 'unzip', '-q', archive, '-d', target], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code]: unknown[] = await once(child, 'exit');
  if (code !== 0) throw new Error(`unzip failed (${String(code)}).`);
}
