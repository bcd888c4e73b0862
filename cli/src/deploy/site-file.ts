import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { wrongUsage } from '../failure.ts';

/** Which site a folder belongs to: postern.site.json beside the published folder. It chooses no server. */
export type SiteFile = { readonly path: string; readonly site: string | undefined };

export async function readSiteFile(
  folder: string,
  given: string | undefined,
  origin: string,
): Promise<SiteFile> {
  const path = given ?? join(dirname(folder), 'postern.site.json');
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return { path, site: undefined };
  const { server, site } = parsed(text, path);
  if (server !== origin)
    throw wrongUsage(
      `${path} names the server ${String(server)}, and this request goes to ${origin}.`,
      'Name another file with --site-file, or the site with --site.',
    );
  if (typeof site !== 'string') throw wrongUsage(`${path} names no site.`);
  return { path, site };
}

function parsed(text: string, path: string): { server?: unknown; site?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // The same as any other content that is no object.
  }
  throw wrongUsage(`${path} is not a JSON object.`);
}

export async function writeSiteFile(path: string, origin: string, site: string): Promise<void> {
  await writeFile(path, `${JSON.stringify({ server: origin, site }, null, 2)}\n`);
}
