import { deepest } from '../content/paths.ts';
import { filePathOf, isHashed } from './paths.ts';
import {
  followRedirects,
  type HeaderRule,
  headersFile,
  type RedirectRule,
  redirectsFile,
} from '../content/site-rules.ts';

/** Which file an address serves. Pure: takes a version's files and rules, and returns one outcome (contract 6, Gateway). */
export type ServedFile = {
  /** SHA-256 of the uploaded bytes. */
  readonly digest: string;
  readonly size: number;
  readonly path: string;
  /** Compressed forms, smallest first. */
  readonly variants: readonly { readonly encoding: string; readonly stored: string; readonly size: number }[];
};

export type ServedContent = {
  readonly spa: boolean;
  readonly files: ReadonlyMap<string, ServedFile>;
  /** Hashed files of earlier versions, and when each stops being reachable, in milliseconds. */
  readonly skew: ReadonlyMap<string, { readonly file: ServedFile; readonly until: number }>;
  readonly redirects: readonly RedirectRule[];
  readonly headers: readonly HeaderRule[];
};

export type Resolved =
  | { readonly kind: 'file'; readonly file: ServedFile; readonly status: 200 | 404 }
  | { readonly kind: 'redirect'; readonly to: string; readonly status: number }
  | { readonly kind: 'missing' };

const hidden = new Set([redirectsFile, headersFile]);

/** `rawPath`: the path of the request line, without the query. `isDocument`: a person opens it as a page. */
export function resolve(
  content: ServedContent,
  rawPath: string,
  { isDocument, now }: { isDocument: boolean; now: number },
): Resolved {
  const path = filePathOf(rawPath);
  if (path === undefined) return notFound(content, '');
  return (
    existing(content, path, now) ??
    redirected(content, path) ??
    (content.spa && isDocument ? startPage(content) : undefined) ??
    notFound(content, path)
  );
}

function existing(content: ServedContent, path: string, now: number): Resolved | undefined {
  if (path === '' || path.endsWith('/')) {
    const index = fileAt(content, path === '' ? 'index.html' : `${path}index.html`, 200);
    const bare = path.slice(0, -1);
    // One form of each address: `/a/` redirects to `/a` where only a.html exists.
    return index ?? (content.files.has(`${bare}.html`) ? moved(bare) : undefined);
  }
  const exact = fileAt(content, path, 200) ?? fileAt(content, `${path}.html`, 200);
  if (exact !== undefined) return exact;
  if (content.files.has(`${path}/index.html`)) return moved(`${path}/`);
  if (!isHashed(path)) return undefined;
  const earlier = content.skew.get(path);
  return earlier !== undefined && now < earlier.until
    ? { kind: 'file', file: earlier.file, status: 200 }
    : undefined;
}

function fileAt({ files }: ServedContent, path: string, status: 200 | 404): Resolved | undefined {
  const file = hidden.has(path) ? undefined : files.get(path);
  return file && { kind: 'file', file, status };
}

/** Generators that also make a page of index.html write the start of their app to 200.html. */
function startPage(content: ServedContent): Resolved | undefined {
  return fileAt(content, '200.html', 200) ?? fileAt(content, 'index.html', 200);
}

function moved(path: string): Resolved {
  return { kind: 'redirect', to: `/${path.split('/').map(encodeURIComponent).join('/')}`, status: 301 };
}

function redirected({ redirects }: ServedContent, path: string): Resolved | undefined {
  const found = followRedirects(redirects, path);
  return found && { kind: 'redirect', ...found };
}

/** The nearest 404.html, from the folder of the address upwards. */
function notFound(content: ServedContent, path: string): Resolved {
  const folders = path.split('/').slice(0, -1);
  for (let depth = Math.min(folders.length, deepest); depth >= 0; depth -= 1) {
    const folder = folders.slice(0, depth);
    const page = fileAt(content, [...folder, '404.html'].join('/'), 404);
    if (page !== undefined) return page;
  }
  return { kind: 'missing' };
}
