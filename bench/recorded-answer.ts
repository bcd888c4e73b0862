import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** Headers that Node adds to every response, including those of a bare server. */
const addedByNode = ['date', 'connection', 'keep-alive'];

/** What our server answers to one request, for a bare server to repeat: without the headers that the bare server adds itself. */
export async function recordAnswer(
  url: string,
  headers: Readonly<Record<string, string>>,
  alsoAdded: readonly string[] = [],
): Promise<{ headers: [name: string, value: string][]; body: Buffer }> {
  const [answer]: IncomingMessage[] = await once(get(url, { headers }), 'response');
  if (answer?.statusCode !== 200) throw new Error(`${url} answered ${answer?.statusCode}.`);
  const added = new Set([...addedByNode, ...alsoAdded]);
  const { rawHeaders } = answer;
  const kept = rawHeaders.flatMap((name, at): [string, string][] =>
    at % 2 === 0 && !added.has(name.toLowerCase()) ? [[name, rawHeaders[at + 1] ?? '']] : [],
  );
  return { headers: kept, body: await buffer(answer) };
}
