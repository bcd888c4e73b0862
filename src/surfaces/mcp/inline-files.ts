import { buffer } from 'node:stream/consumers';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import type { RouteFile } from './call-route.ts';

export type InlineFile = {
  readonly path: string;
  readonly content: string;
  readonly encoding?: 'utf8' | 'base64' | undefined;
};

/** Packs files of a tool's arguments into an archive for the routes of sites, so that they pass the same checks. */
export async function archiveOf(files: readonly InlineFile[]): Promise<RouteFile> {
  const tar = pack();
  for (const { path, content, encoding } of files)
    tar.entry({ name: path }, Buffer.from(content, encoding ?? 'utf8'));
  tar.finalize();
  const bytes = await buffer(tar.pipe(createGzip({ level: 1 })));
  return { name: 'files.tar.gz', contentType: 'application/gzip', bytes };
}
