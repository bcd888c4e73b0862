import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { wrongUsage } from '../core/failure.ts';

/**
 * Which site each folder belongs to: postern.site.json, next to the published folders. Folders are written relative to the
 * file, so that it can be committed. It chooses no server.
 */
export type SiteFile = {
  readonly path: string;
  /** The site of the published folder. */
  readonly site: string | undefined;
  /** Other folders with their sites, which the published folder must not replace. */
  readonly others: Readonly<Record<string, string>>;
  /** Remembers the site of the published folder; keeps the sites of other folders. @throws Error of the file system */
  remember(site: string): Promise<void>;
  /** Takes back what remember() wrote. @throws Error of the file system */
  restore(): Promise<void>;
};

/** @throws Failure of the code 2 */
export async function readSiteFile(
  folder: string,
  given: string | undefined,
  origin: string,
): Promise<SiteFile> {
  const path = given ?? join(dirname(folder), 'postern.site.json');
  const text = await readFile(path, 'utf8').catch(() => undefined);
  const { site: ofAny, sites } =
    text === undefined ? { site: undefined, sites: {} } : parsed(text, path, origin);
  const name =
    relative(dirname(resolve(path)), folder)
      .split(sep)
      .join('/') || '.';
  const { [name]: own, ...others } = sites;
  return {
    path,
    site: own ?? ofAny,
    others,
    async remember(site) {
      if (own === site) return;
      const value = { server: origin, sites: { ...sites, [name]: site } };
      await writeFile(path, `${JSON.stringify(value, null, 2)}\n`);
    },
    async restore() {
      if (text === undefined) await rm(path, { force: true });
      else await writeFile(path, text);
    },
  };
}

type Content = {
  /** The site in a file of an earlier version of postern, which did not name the folder. */
  readonly site: string | undefined;
  readonly sites: Readonly<Record<string, string>>;
};

function parsed(text: string, path: string, origin: string): Content {
  const { server, site, sites } = objectIn(text, path);
  if (server !== origin)
    throw wrongUsage(
      `${path} names the server ${String(server)}, and this request goes to ${origin}.`,
      'Name another file with --site-file, or the site with --site.',
    );
  if (typeof site === 'string') return { site, sites: {} };
  const isMap = typeof sites === 'object' && sites !== null && !Array.isArray(sites);
  const entries = isMap ? Object.entries(sites) : [];
  const isValid = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string';
  if (entries.length === 0 || !entries.every(isValid))
    throw wrongUsage(
      `${path} names no site.`,
      'It must look like {"server": "https://…", "sites": {"dist": "<site id>"}}.',
    );
  return { site: undefined, sites: Object.fromEntries(entries) };
}

function objectIn(text: string, path: string): { server?: unknown; site?: unknown; sites?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // The same as any other content that is no object.
  }
  throw wrongUsage(`${path} is not a JSON object.`);
}
