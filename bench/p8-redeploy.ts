import { type BenchOptions, type Figure, sideBySide } from './figures.ts';
import { startServer } from './server-process.ts';
import { archiveOf, digestOf, send, type SiteFile, siteFiles } from './site-files.ts';

/** P8: one of 1,000 files changed and sent by digest, against publishing all of them as a ZIP. One body is sent. */
export async function redeploy({ quick }: BenchOptions): Promise<Figure[]> {
  const server = await startServer();
  await server.restJobs();
  const [key = ''] = server.keys;
  const api = `${server.address}/api/v2/sites`;
  const count = quick ? 50 : 1_000;
  let bodies = 0;
  let files: SiteFile[] = siteFiles(count);
  const made = await send(api, 'POST', key, { type: 'application/zip', body: archiveOf(files) });
  const site = `${api}/${String(made.data?.['id'])}`;

  async function changeOne(): Promise<number> {
    const [changed] = siteFiles(1);
    if (changed === undefined) throw new Error('One file was asked for.');
    files = [{ ...changed, name: files[0]?.name ?? changed.name }, ...files.slice(1)];
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
    for (const digest of (started.data?.['missing'] ?? []) as string[]) {
      bodies += 1;
      const body = contents.get(digest) ?? Buffer.alloc(0);
      await send(`${upload}/blobs/${digest}`, 'PUT', key, { type: 'application/octet-stream', body });
    }
    await send(`${upload}/publish`, 'POST', key, { type: 'application/json', body: '{}' });
    return (performance.now() - startedAt) / 1_000;
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
    const measured = await sideBySide(rounds, changeOne, publishAll);
    return [
      {
        id: 'P8',
        what: 'redeploy with 1 of 1,000 files changed, against publishing all',
        ours: `${(measured.ours * 1_000).toFixed(0)} ms`,
        reference: `${measured.reference.toFixed(2)} s`,
        ratio: measured.ratio,
        floor: '≤ 0.05',
        goal: '≤ 0.05',
        passes: measured.ratio <= 0.05,
      },
      {
        id: 'P8',
        what: 'bodies sent for one changed file',
        ours: (bodies / (rounds + 1)).toFixed(2),
        reference: '–',
        ratio: bodies / (rounds + 1),
        floor: '1',
        goal: '1',
        passes: bodies === rounds + 1,
      },
    ];
  } finally {
    await server.stop();
  }
}
