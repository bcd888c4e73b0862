import { createHash } from 'node:crypto';
import { zipOf } from '../../archives/zip.ts';
import type { Answer, CallOptions, Harness } from '../../harness.ts';

/** Short words for tests of Sites. */
export type Files = Readonly<Record<string, string | Buffer>>;

export const page = (text: string) => `<!doctype html><title>${text}</title><p>${text}</p>`;

/** The body of a request that uploads these files. */
export function archiveOf(files: Files): { type: string; bytes: Buffer } {
  const parts = Object.entries(files).map(([name, content]) => ({ name, content }));
  return { type: 'application/zip', bytes: zipOf(parts) };
}

export function upload(
  h: Harness,
  as: NonNullable<CallOptions['as']>,
  files: Files,
  query: Record<string, string> = {},
): Promise<Answer> {
  return h.call('POST', '/sites', { as, query, raw: archiveOf(files) });
}

export function replace(
  h: Harness,
  as: NonNullable<CallOptions['as']>,
  id: string,
  files: Files,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return h.call('PUT', `/sites/${id}/content`, { as, headers, raw: archiveOf(files) });
}

/** A form as browsers and curl write it (RFC 7578). */
export function formOf(
  parts: readonly { name: string; fileName?: string; type?: string; value: Buffer | string }[],
): {
  type: string;
  bytes: Buffer;
} {
  const boundary = 'postern-test-boundary';
  const pieces = parts.flatMap(({ name, fileName, type, value }) => [
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${fileName === undefined ? '' : `; filename="${fileName}"`}\r\n` +
        `${type === undefined ? '' : `content-type: ${type}\r\n`}\r\n`,
    ),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ]);
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    bytes: Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]),
  };
}

/** What a digest upload announces of these files. */
export function announced(files: Files): Record<string, { sha256: string; size: number }> {
  return Object.fromEntries(
    Object.entries(files).map(([path, content]) => [
      path,
      { sha256: sha256(content), size: Buffer.byteLength(content) },
    ]),
  );
}

export function sha256(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/** Starts a digest upload of these files. */
export function start(
  h: Harness,
  as: NonNullable<CallOptions['as']>,
  id: string,
  files: Files,
): Promise<Answer> {
  return h.call('POST', `/sites/${id}/uploads`, { as, body: { files: announced(files) } });
}

/** Sends one content under its SHA-256, or under another. */
export function send(
  h: Harness,
  as: NonNullable<CallOptions['as']>,
  upload: string,
  content: string | Buffer,
  digest = sha256(content),
): Promise<Answer> {
  const raw = { type: 'application/octet-stream', bytes: Buffer.from(content) };
  return h.call('PUT', `${upload}/blobs/${digest}`, { as, raw });
}
