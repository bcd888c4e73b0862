import type { Route } from '../../../src/platform/http.ts';
import { tarBlocks, tarEnd } from '../../archives/tar.ts';
import type { Answer, CallOptions, Harness } from '../../harness.ts';
import { contents } from '../access/cast.ts';
import { announced, archiveOf, page, replace, sha256, start, upload } from './uploads.ts';

/** One good request for every route about a site, from the program's own list of routes. */
export type Target = { readonly id: string; readonly upload: string; readonly number?: string };

const content = page('kept');
const files = { 'index.html': page('secret'), 'kept.html': content };

const bodies: Record<string, Pick<CallOptions, 'body' | 'raw'>> = {
  createSite: { raw: archiveOf(files) },
  changeSite: { body: { visibility: 'public' } },
  replaceSiteContent: { raw: archiveOf(files) },
  startUpload: { body: { files: announced(files) } },
  sendContent: { raw: { type: 'application/octet-stream', bytes: content } },
  sendContents: {
    raw: {
      type: 'application/x-tar',
      bytes: Buffer.concat([tarBlocks([{ name: sha256(content), content }]), tarEnd]),
    },
  },
  publishUpload: { body: {} },
  takeSiteDown: { body: { reason: 'reported' } },
  putSiteBack: { body: { reason: 'cleaned' } },
};

/** Routes about one site. */
export function siteRoutes(h: Harness): Route[] {
  return h.app.routes.filter(({ path }) => path.startsWith('/sites/{id}'));
}

/** A site with two versions and an upload that could be published: every route has something to do. */
export async function target(
  h: Harness,
  as: NonNullable<CallOptions['as']>,
  visibility: 'private' | 'public' = 'private',
): Promise<Target> {
  const made = await upload(h, as, files, { visibility, name: `plans ${visibility}` });
  const { id } = made.data;
  await replace(h, as, id, { ...files, 'more.html': page('more') });
  const begun = await start(h, as, id, { 'kept.html': content });
  if (begun.status !== 201) throw new Error(`No upload: ${begun.text}`);
  return { id, upload: begun.data.id };
}

export function use(
  h: Harness,
  route: Route,
  { id, upload: at, number = '1' }: Target,
  as: NonNullable<CallOptions['as']>,
): Promise<Answer> {
  const path = route.path
    .replace('{id}', id)
    .replace('{upload}', at)
    .replace('{number}', number)
    .replace('{sha256}', sha256(content))
    .replace('{path*}', 'index.html');
  return h.call(route.method, path, { as, ...bodies[route.operationId] });
}

/** Equal before and after means that nothing of any site changed. */
export async function siteTables(h: Harness): Promise<unknown> {
  return await contents(h, 'site%');
}
