import { type Figure, perSecond, sideBySide } from './figures.ts';
import { load } from './load.ts';
import { recordAnswer } from './recorded-answer.ts';
import { startNeighbour } from './server-process.ts';

/**
 * For comparison: plain node:http on the same core with the gateway's own response, byte for byte, from memory. Requests
 * that the gateway reads without node:http (decision 0032) may exceed it. With `floor`, our ratio to it is judged: unlike the
 * one to nginx, it hardly depends on the machine.
 */
export async function bareHttp(
  about: { id: string; what: string; rounds: number; seconds: number; floor?: number | undefined },
  url: string,
  headers: Readonly<Record<string, string>>,
  { ours, reference }: { ours(): Promise<number>; reference(): Promise<number> },
): Promise<Figure[]> {
  const { id, what, rounds, seconds } = about;
  const bare = await startBare(url, headers);
  const bareRate = async () => (await load(`http://127.0.0.1:${bare.port}/`, { seconds, headers })).perSecond;
  const figure = (
    title: string,
    measured: Awaited<ReturnType<typeof sideBySide>>,
    floor?: number,
  ): Figure => ({
    id,
    what: title,
    ours: perSecond(measured.ours),
    reference: perSecond(measured.reference),
    ratio: measured.ratio,
    floor: floor === undefined ? '–' : `≥ ${floor}`,
    goal: '–',
    passes: floor === undefined || measured.ratio >= floor,
  });
  try {
    return [
      figure(`bare node:http with the same answer, ${what}`, await sideBySide(rounds, bareRate, reference)),
      figure(`${what}: ours against bare node:http`, await sideBySide(rounds, ours, bareRate), about.floor),
    ];
  } finally {
    await bare.stop();
  }
}

async function startBare(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ port: number; stop(): Promise<void> }> {
  const answer = await recordAnswer(url, headers);
  const message = { headers: answer.headers.flat(), body: answer.body.toString('latin1') };
  return await startNeighbour('bare-http.ts', { message });
}
