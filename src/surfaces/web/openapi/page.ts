import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import type { OpenApi } from './types.ts';

/**
 * Serves a text that is created at the first request, so that it does not delay the start. Anyone may read and cache
 * it; an ETag saves the second transfer. Compressed on request, because it contains no secret that its size could
 * reveal.
 */
export function staticPage(
  path: string,
  contentType: string,
  make: () => string,
  headers: Readonly<Record<string, string>> = {},
): (app: FastifyInstance) => void {
  let made: { text: Buffer; packed: Buffer; etag: string } | undefined;
  const page = () => {
    if (made === undefined) {
      // Bytes, which all answers share: each text would be encoded again.
      const text = Buffer.from(make());
      const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;
      made = { text, packed: gzipSync(text), etag };
    }
    return made;
  };
  return (app) => {
    app.get(
      path,
      { config: { access: { callers: 'anyone', identity: 'none' }, needsNoStore: true } },
      (request, reply) => {
        const { text, packed, etag } = page();
        const cache = {
          etag,
          vary: 'accept-encoding',
          'cache-control': 'public, max-age=0, must-revalidate',
        };
        reply.headers({ ...cache, ...headers });
        if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
        reply.type(contentType);
        if (
          !/\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(request.headers['accept-encoding'] ?? ''))
        ) {
          return reply.send(text);
        }
        // Another representation needs another strong tag; the weak tag says "equivalent for a reader".
        return reply.headers({ 'content-encoding': 'gzip', etag: `W/${etag}` }).send(packed);
      },
    );
  };
}

export function openApiPage(document: () => OpenApi): (app: FastifyInstance) => void {
  const make = () => JSON.stringify(document());
  return staticPage('/api/v2/openapi.json', 'application/json; charset=utf-8', make);
}

/** RFC 9110 section 13.1.2: a list of tags, or `*`; weak comparison. */
function isKnown(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag);
}
