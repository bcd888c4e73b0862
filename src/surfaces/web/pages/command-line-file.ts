import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';

/**
 * The command line of the same version, as one file, and its SHA-256: for installations that reach no package registry.
 * The digest proves that the transfer was whole, not that this server is trusted. Without `npm run build:cli`, both
 * addresses answer 404.
 */
export async function commandLineFile(path: string): Promise<(scope: FastifyInstance) => void> {
  const bytes = await readFile(path).catch(() => undefined);
  const digest = bytes && createHash('sha256').update(bytes).digest('hex');
  const config = { access: { callers: 'anyone', identity: 'none' }, needsNoStore: true } as const;

  return (scope) => {
    scope.get('/cli/postern.mjs', { config }, (request, reply) => {
      if (bytes === undefined) return reply.callNotFound();
      reply.headers({ etag: `"${digest}"`, 'cache-control': 'public, max-age=0, must-revalidate' });
      if (request.headers['if-none-match'] === `"${digest}"`) return reply.code(304).send();
      return reply
        .type('text/javascript; charset=utf-8')
        .header('content-disposition', 'attachment; filename="postern.mjs"')
        .send(bytes);
    });
    scope.get('/cli/postern.mjs.sha256', { config }, (_, reply) => {
      if (bytes === undefined) return reply.callNotFound();
      // The format of sha256sum, so that `sha256sum --check` reads it.
      return reply
        .type('text/plain; charset=utf-8')
        .header('cache-control', 'public, max-age=0, must-revalidate')
        .send(`${digest}  postern.mjs\n`);
    });
  };
}
