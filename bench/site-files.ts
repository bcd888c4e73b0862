import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { zipOf } from '../test/archives/zip.ts';
import { pageOf } from './content.ts';

/** The files that the upload benches publish: half pages and scripts, half images, 50 KB each. */
export type SiteFile = { readonly name: string; readonly content: Buffer; readonly stored: boolean };

export function siteFiles(count: number): SiteFile[] {
  const prose = pageOf(50);
  return Array.from({ length: count }, (_, at) => {
    const isText = at % 2 === 0;
    return {
      name: `assets/${at % 20}/file-${at}.${isText ? 'html' : 'png'}`,
      // Every file is different, in every round too: uploading existing content would cost less.
      content: isText
        ? Buffer.concat([Buffer.from(`<!-- ${randomBytes(8).toString('hex')} -->`), prose])
        : // As a PNG begins: random bytes may begin like a gzip file, and a broken one is refused.
          Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(49_992)]),
      stored: !isText,
    };
  });
}

export function archiveOf(files: readonly SiteFile[]): Buffer {
  return zipOf(files);
}

export function digestOf(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

export async function send(
  url: string,
  method: string,
  key: string,
  { type, body }: { type: string; body: Buffer | string },
): Promise<{ data: Record<string, unknown> | null }> {
  const answer = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': type },
    body,
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status}: ${text.slice(0, 500)}`);
  return text === '' ? { data: null } : (JSON.parse(text) as { data: Record<string, unknown> });
}

/** Resident memory in MiB (proc(5) status). */
export function residentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;
}
