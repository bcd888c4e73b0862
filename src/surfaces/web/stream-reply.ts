import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { StreamReply } from '../../platform/http.ts';

/** RFC 6266 and 8187: any name, for any client. */
function attachment(fileName: string): string {
  const plain = fileName.replaceAll(/[^\w.-]/g, '_');
  return plain === fileName
    ? `attachment; filename="${plain}"`
    : `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(fileName).replaceAll("'", '%27')}`;
}

/**
 * `reauthorize` rejects when the caller may no longer read: a long response must not outlive its session. `enter` registers
 * a check for changes, and returns how to end it.
 */
export async function sendStream(
  reply: FastifyReply,
  result: StreamReply,
  reauthorize: () => Promise<void>,
  enter: (check: () => void) => () => void,
): Promise<void> {
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    ...result.headers,
    'content-type': result.contentType,
    'content-disposition': attachment(result.fileName),
  });
  const leave = enter(() => void reauthorize().catch(() => raw.destroy()));
  try {
    for await (const chunk of result.stream) {
      // Also before the first piece: a change before enter() was not heard.
      await reauthorize();
      if (raw.destroyed) return;
      if (!raw.write(chunk)) await drained(raw);
    }
    raw.end();
  } catch {
    // The status is already sent, so cutting the connection is the only way to report that the export is incomplete.
    raw.destroy();
  } finally {
    leave();
  }
}

/** Also resolves when the connection is closed. */
async function drained(raw: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      raw.off('drain', done).off('close', done);
      resolve();
    };
    raw.on('drain', done).on('close', done);
  });
}
