import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import type { Artifact } from '../../src/features/engine/contract.ts';
import { findOutput, storeOutput } from '../../src/features/engine/output.ts';
import type { Transfers } from '../../src/features/engine/transfers/transfers.ts';
import type { Blobs } from '../../src/platform/blobs/blobs.ts';

type Ticket = { readonly kind: 'source' | 'output' | 'tree'; readonly of: string; readonly digest: string };

/** The routes of web for pods and their tickets, in memory, on the address of the node. */
export function createPodFiles(blobs: Blobs) {
  const tickets = new Map<string, Ticket>();
  const outputs = new Map<string, Artifact>();
  const add = (ticket: Ticket, value = randomBytes(32).toString('base64url')) => {
    tickets.set(value, ticket);
    return value;
  };

  const transfers: Transfers = {
    async offerSource(buildId, folder) {
      const found = await findOutput(folder, { outputFiles: 10_000 });
      if (found.kind === 'failed') throw new Error(found.message);
      const { digest } = await storeOutput(found, blobs);
      return add({ kind: 'source', of: buildId, digest });
    },
    expectOutput: async (buildId) => add({ kind: 'output', of: buildId, digest: '' }),
    outputOf: async (buildId) => outputs.get(buildId),
    async closeBuild(buildId) {
      outputs.delete(buildId);
      close(buildId);
    },
    offerTree: async (environmentId, digest) =>
      add(
        { kind: 'tree', of: environmentId, digest },
        createHash('sha256').update(`${environmentId}/${digest}`).digest('base64url'),
      ),
    closeEnvironment: async (environmentId) => close(environmentId),
  };

  function close(id: string): void {
    for (const [value, { of }] of tickets) if (of === id) tickets.delete(value);
  }

  const server = createServer((request, response) => {
    const value = request.headers.authorization?.replace('Bearer ', '') ?? '';
    const ticket = tickets.get(value);
    const isPut = request.method === 'PUT';
    if (ticket === undefined || isPut !== (ticket.kind === 'output'))
      return void response.writeHead(401).end();
    if (ticket.kind !== 'tree') tickets.delete(value);
    const answer = async () => {
      if (!isPut) return await pipeline(await blobs.read(ticket.digest), response);
      const { digest, size } = await blobs.write(request);
      outputs.set(ticket.of, { digest, size, ...(await countIn(digest)) });
      response.writeHead(201).end(JSON.stringify({ data: { digest, size } }));
    };
    answer().catch((error: unknown) => response.destroy(error as Error));
  });

  async function countIn(digest: string) {
    let [files, bytes] = [0, 0];
    for await (const entry of (await blobs.read(digest)).pipe(createGunzip()).pipe(extract())) {
      if (entry.header.type !== 'directory') files += 1;
      if (entry.header.type === 'file') bytes += entry.header.size ?? 0;
      entry.resume();
    }
    return { files, bytes };
  }

  return {
    transfers,
    /** Its URL. */
    async open(host: string): Promise<string> {
      await new Promise<void>((resolve) => server.listen(0, host, resolve));
      return `http://${host}:${(server.address() as AddressInfo).port}/api/v2/environment-files`;
    },
    close: () => void server.close(),
  };
}
