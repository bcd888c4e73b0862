import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { html } from '../html.ts';
import { type Page, page } from './layout.ts';

/**
 * The built web app (ui/dist) in memory: its document and its files. Only file names from the build are served, so a
 * request's path never becomes a path of the file system.
 */
export type WebApp = {
  /** Undefined when the app was not built. */
  readonly document: string | undefined;
  readonly assets: ReadonlyMap<string, Asset>;
};

type Encoding = 'br' | 'gzip' | 'identity';
type Asset = { readonly type: string; readonly bytes: Readonly<Record<Encoding, Buffer>> };

/** The app's own addresses besides `/`; each gets the same document. Known to ui/src/shell/router.tsx too. */
const settingsPaths = [
  '/settings/keys',
  '/settings/keys/new',
  '/settings/keys/:id',
  '/settings/keys/:id/narrow',
  '/settings/keys/:id/replace',
  '/settings/clients',
  '/settings/agents',
  '/settings/agents/sessions/:id',
  '/settings/agents/approvals/:id',
  '/settings/connections',
  '/settings/command-line',
  '/settings/notices',
  '/settings/refusals',
  '/settings/password',
  '/settings/sessions',
  '/settings/passkeys',
];
const sitesPaths = ['/sites', '/sites/new', '/sites/:id'];
const environmentsPaths = [
  '/environments',
  '/environments/new',
  '/environments/:id',
  '/environments/:id/deploys/:deploy',
];
const adminPaths = [
  '/admin',
  '/admin/service-keys',
  '/admin/service-keys/new',
  '/admin/service-keys/:id',
  '/admin/service-keys/:id/narrow',
  '/admin/user-keys',
  '/admin/user-keys/:id',
  '/admin/access-controls',
  '/admin/access-controls/sign-ins',
  '/admin/sites',
  '/admin/sites/all',
  '/admin/environments',
  '/admin/environments/links',
  '/admin/mcp',
  '/admin/mcp/clients',
  '/admin/mcp/servers',
  '/admin/mcp/servers/:slug',
  '/admin/agents',
  '/admin/agents/new',
  '/admin/agents/models',
  '/admin/agents/sessions',
  '/admin/agents/sessions/:id',
  '/admin/agents/:id',
  '/admin/users',
  '/admin/users/:id',
  '/admin/groups',
  '/admin/repositories',
  '/admin/repositories/:owner/:name',
  '/admin/audit',
  '/admin/audit/:id',
  '/admin/surfaces',
];
export const appPaths: readonly string[] = [
  ...settingsPaths,
  ...sitesPaths,
  ...environmentsPaths,
  ...adminPaths,
];

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export async function readWebApp(folder: string): Promise<WebApp> {
  const document = await readFile(join(folder, 'index.html'), 'utf8').catch(() => undefined);
  const assets = new Map<string, Asset>();
  if (document === undefined) return { document, assets };
  for (const name of await readdir(join(folder, 'assets'))) {
    const type = types[extname(name)];
    if (type === undefined) continue;
    const read = (ending: string) => readFile(join(folder, 'assets', name + ending));
    const [identity, br, gzip] = await Promise.all([read(''), read('.br'), read('.gz')]);
    assets.set(name, { type, bytes: { identity, br, gzip } });
  }
  return { document, assets };
}

/** A name changes with its content, so a browser may cache it permanently. */
export function serveAssets(scope: FastifyInstance, { assets }: WebApp): void {
  scope.get<{ Params: { name: string } }>(
    '/assets/:name',
    { config: { access: { callers: 'anyone', identity: 'none' }, needsNoStore: true } },
    (request, reply) => {
      const asset = assets.get(request.params.name);
      if (asset === undefined) return reply.callNotFound();
      const encoding = encodingFor(request);
      if (encoding !== 'identity') reply.header('content-encoding', encoding);
      return reply
        .header('content-type', asset.type)
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('vary', 'accept-encoding')
        .send(asset.bytes[encoding]);
    },
  );
}

/**
 * Scripts load only from /assets/ on our origin, so site files that the API returns cannot run as scripts here. Inline
 * styles are forbidden too; components set positions through the style object, which the policy allows.
 */
export function appPage({ document }: WebApp, uiOrigin: string): Page {
  if (document === undefined) return notBuilt;
  const assets = `${uiOrigin}/assets/`;
  return {
    document,
    contentSecurityPolicy:
      `default-src 'none'; script-src ${assets}; style-src ${assets}; img-src ${assets}; connect-src 'self'; ` +
      `form-action 'self'; base-uri 'none'; frame-ancestors 'none'; ` +
      `require-trusted-types-for 'script'; trusted-types 'none'`,
  };
}

const notBuilt = page({
  title: 'Not built',
  body: html`<h1>The web app is not built</h1>
<p class="lead">The API works. The pages need <code>npm run build:ui</code>, which <code>npm start</code> runs automatically.</p>
<a class="button quiet" href="/api/v2/docs">API reference</a>`,
});

function encodingFor({ headers }: FastifyRequest): Encoding {
  const accepted = (headers['accept-encoding'] ?? '').split(',').map((one) => one.trim().toLowerCase());
  if (accepted.includes('br')) return 'br';
  return accepted.includes('gzip') ? 'gzip' : 'identity';
}
