import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { configFolder } from '../http/contexts.ts';
import type { Io } from '../core/io.ts';

/** The upload that a deploy began and did not publish. The next deploy of the site continues it. */
export type Unfinished = {
  /** The id of the upload, if it announced the same files. */
  find(announcement: string): Promise<string | undefined>;
  remember(announcement: string, upload: string): Promise<void>;
  forget(): Promise<void>;
};

export function unfinishedUpload(origin: string, siteId: string, env: Io['env']): Unfinished {
  const folder = configFolder(env);
  const name = `${new URL(origin).host}-${siteId}`.replaceAll(/[^\w.-]/g, '_');
  const file = join(folder ?? '', 'uploads', name);
  return {
    async find(announcement) {
      if (folder === undefined) return undefined;
      const text = await readFile(file, 'utf8').catch(() => '');
      const [ofUpload, upload] = text.split('\n');
      return ofUpload === announcement ? upload : undefined;
    },
    async remember(announcement, upload) {
      if (folder === undefined) return;
      await mkdir(join(folder, 'uploads'), { recursive: true, mode: 0o700 });
      await writeFile(file, `${announcement}\n${upload}\n`, { mode: 0o600 });
    },
    async forget() {
      if (folder !== undefined) await rm(file, { force: true });
    },
  };
}
