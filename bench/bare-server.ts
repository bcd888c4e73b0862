import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type Figure, perSecond, sideBySide } from './figures.ts';
import { load } from './load.ts';
import { startNeighbour } from './server-process.ts';

/** Added by Node to every answer, also to the bare one. */
const added = new Set(['date', 'connection', 'keep-alive']);

/**
 * For comparison, node:http alone on the same core with the gateway's own
 * answer, byte for byte, in memory. What the gateway reads without node:http (decision 0032) may be above it.
 */
export async function bareHttp(
  { id, what, rounds, seconds }: { id: string; what: string; rounds: number; seconds: number },
  url: string,
  headers: Readonly<Record<string, string>>,
  reference: () => Promise<number>,
): Promise<Figure> {
  const bare = await startBare(url, headers);
  try {
    const measured = await sideBySide(
      rounds,
      async () => (await load(`http://127.0.0.1:${bare.port}/`, { seconds, headers })).perSecond,
      reference,
    );
    return {
      id,
      what: `bare node:http with the same answer, ${what}`,
      ours: perSecond(measured.ours),
      reference: perSecond(measured.reference),
      ratio: measured.ratio,
      floor: '–',
      goal: '–',
      passes: true,
    };
  } finally {
    await bare.stop();
  }
}

async function startBare(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ port: number; stop(): Promise<void> }> {
  const [answer]: IncomingMessage[] = await once(get(url, { headers }), 'response');
  if (answer?.statusCode !== 200) throw new Error(`${url} answered ${answer?.statusCode}.`);
  const { rawHeaders } = answer;
  const kept = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && !added.has(name.toLowerCase()) ? [name, rawHeaders[at + 1] ?? ''] : [],
  );
  const body = (await buffer(answer)).toString('latin1');
  return await startNeighbour('bare-http.ts', { message: { headers: kept, body } });
}
