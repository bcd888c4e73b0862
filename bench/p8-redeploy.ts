import { tarBlocks, tarEnd } from '../test/archives/tar.ts';
import { type BenchOptions, type Figure, sideBySide } from './figures.ts';
import { startServer } from './server-process.ts';
import { archiveOf, digestOf, send, type SiteFile, siteFiles } from './site-files.ts';

/**
 * P8: sends one changed file of 1,000 by digest, against publishing all of them in the same way (one body instead of
 * 1,000, in one tar as the web app sends them) and, for comparison, as one ZIP.
 */
export async function redeploy({ quick }: BenchOptions): Promise<Figure[]> {
  const server = await startServer();
  await server.restJobs();
  const [key = ''] = server.keys;
  const api = `${server.address}/api/v2/sites`;
  const count = quick ? 50 : 1_000;
  /** Bodies sent by the last upload, and the maximum over the uploads that changed one file. */
  let bodies = 0;
  let most = 0;
  let files: SiteFile[] = siteFiles(count);
  const made = await send(api, 'POST', key, { type: 'application/zip', body: archiveOf(files) });
  const site = `${api}/${String(made.data?.['id'])}`;

  /** Seconds from the announcement to the new version. */
  async function sendByDigest(): Promise<number> {
    const contents = new Map(files.map(({ content }) => [digestOf(content), content]));
    const announced = Object.fromEntries(
      files.map(({ name, content }) => [name, { sha256: digestOf(content), size: content.length }]),
    );
    const startedAt = performance.now();
    const started = await send(`${site}/uploads`, 'POST', key, {
      type: 'application/json',
      body: JSON.stringify({ files: announced }),
    });
    const upload = `${site}/uploads/${String(started.data?.['id'])}`;
    const missing = (started.data?.['missing'] ?? []) as string[];
    bodies = missing.length;
    const parts = missing.map((name) => ({ name, content: contents.get(name) ?? Buffer.alloc(0) }));
    const body = Buffer.concat([tarBlocks(parts), tarEnd]);
    await send(`${upload}/blobs`, 'PUT', key, { type: 'application/x-tar', body });
    await send(`${upload}/publish`, 'POST', key, { type: 'application/json', body: '{}' });
    return (performance.now() - startedAt) / 1_000;
  }

  async function changeOne(): Promise<number> {
    const [changed] = siteFiles(1);
    if (changed === undefined) throw new Error('One file was asked for.');
    files = [{ ...changed, name: files[0]?.name ?? changed.name }, ...files.slice(1)];
    const seconds = await sendByDigest();
    most = Math.max(most, bodies);
    return seconds;
  }

  async function sendAll(): Promise<number> {
    files = siteFiles(count);
    return await sendByDigest();
  }

  async function publishAll(): Promise<number> {
    const all = siteFiles(count);
    const body = archiveOf(all);
    const startedAt = performance.now();
    await send(`${site}/content`, 'PUT', key, { type: 'application/zip', body });
    const seconds = (performance.now() - startedAt) / 1_000;
    files = all;
    return seconds;
  }

  try {
    const rounds = quick ? 1 : 7;
    const byDigest = await sideBySide(rounds, changeOne, sendAll);
    const asZip = await sideBySide(rounds, changeOne, publishAll);
    return [
      figure('sending all in the same way', byDigest, 0.05),
      figure('sending all as one ZIP', asZip, undefined),
      {
        id: 'P8',
        what: 'bodies sent for one changed file',
        ours: String(most),
        reference: '–',
        ratio: most,
        floor: '1',
        goal: '1',
        passes: most === 1,
      },
    ];
  } finally {
    await server.stop();
  }
}

function figure(
  against: string,
  { ours, reference, ratio }: { ours: number; reference: number; ratio: number },
  most: number | undefined,
): Figure {
  return {
    id: 'P8',
    what: `redeploy with 1 of 1,000 files changed, against ${against}`,
    ours: `${(ours * 1_000).toFixed(0)} ms`,
    reference: `${reference.toFixed(2)} s`,
    ratio,
    floor: most === undefined ? '–' : `≤ ${most}`,
    goal: most === undefined ? '–' : `≤ ${most}`,
    passes: most === undefined || ratio <= most,
  };
}
