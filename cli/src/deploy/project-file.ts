import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { wrongUsage } from '../core/failure.ts';

/** What postern.yaml of the working folder says about a site. It chooses no server. */
export type ProjectFile = {
  /** The id of the site; undefined = it names none. */
  readonly site: string | undefined;
  /** Folders that may be the one to publish, from the working folder; empty = it names none. */
  readonly folders: readonly string[];
};

const fileName = 'postern.yaml';

/** @throws Failure of the code 2, also when it names another server */
export async function readProjectFile(cwd: string, origin: string): Promise<ProjectFile> {
  const text = await readFile(join(cwd, fileName), 'utf8').catch(() => undefined);
  return text === undefined ? { site: undefined, folders: [] } : await projectFrom(text, origin);
}

export async function projectFrom(text: string, origin: string): Promise<ProjectFile> {
  const { parseDocument } = await import('yaml');
  const document = parseDocument(text);
  const [mistake] = document.errors;
  if (mistake !== undefined)
    throw wrongUsage(
      `${fileName} cannot be read: line ${mistake.linePos?.[0].line ?? 1}.`,
      'Check it: postern schema validate',
    );
  const file = mapOf(document.toJS({ maxAliasCount: 100 }));
  const site = mapOf(file['site']);
  const { id, server } = site;
  const named = typeof server === 'string' ? URL.parse(server)?.origin : undefined;
  if (server !== undefined && named !== origin)
    throw wrongUsage(
      `${fileName} names another server than ${origin}, to which this request goes.`,
      'Correct server below site, or choose another context.',
    );
  if (id !== undefined && typeof id !== 'string')
    throw wrongUsage(`id below site in ${fileName} is no text.`);
  const folders = site['folder'] === undefined ? outputsIn(file) : [site['folder']];
  return { site: id, folders: folders.filter((folder) => typeof folder === 'string') };
}

/** The output folders of static services that are built. */
function outputsIn(file: Readonly<Record<string, unknown>>): string[] {
  return Object.values(mapOf(file['services'])).flatMap((service) => {
    const { build, static: files } = mapOf(service);
    if (build === undefined || files === undefined) return [];
    const { directory = '.', output = '.' } = mapOf(build);
    const folder = join(String(directory), String(output));
    // Without an output, the service is the folder of the repository, with everything in it.
    return folder === '.' ? [] : [folder];
  });
}

function mapOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}
