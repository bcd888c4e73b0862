import { setImmediate as othersFirst } from 'node:timers/promises';
import { Parser } from 'htmlparser2';
import type { Manifest } from './manifest.ts';

/**
 * What a version changed against an earlier one, and mistakes in its pages that show only when they are served. Such
 * mistakes are broken links, addresses of the author's own machine, and parts over plain http. The report is bounded
 * and says when it is incomplete.
 */
export type VersionReport = {
  /** Null: there is no earlier version. */
  readonly against: number | null;
  readonly added: NameList;
  readonly changed: NameList;
  readonly removed: NameList;
  /** Difference in bytes; negative when the version is smaller. */
  readonly sizeChange: number;
  readonly brokenLinks: readonly Finding[];
  readonly absolutePaths: readonly Finding[];
  readonly mixedContent: readonly Finding[];
  /** False when there were more pages or findings than the limits allow. */
  readonly isComplete: boolean;
};

export type NameList = { readonly count: number; readonly names: readonly string[] };
export type Finding = { readonly page: string; readonly target: string };

export const maxListed = 100;
const maxPages = 500;
const maxBytes = 20 * 1024 * 1024;
const maxTargetLength = 300;
const maxLinks = 20_000;
/** Maximum characters of an address, and of a list of them; browsers and servers refuse longer ones. */
const maxLinkLength = 2_000;
const maxListLength = 20_000;
/** Links judged before other tasks get a turn. */
const linksAtOnce = 50;
/** Nesting depth of elements; browsers keep 512. Each further level makes the parser slower for every tag. */
const deepest = 512;
/** Tags times the elements around them, which the parser compares. A page as long as `maxBytes` needs a tenth of it. */
const maxComparisons = 100_000_000;
/** Bytes of a page read before other tasks get a turn. */
const bytesAtOnce = 8_192;

export async function reportOf(deps: {
  readonly files: Manifest;
  readonly before: { readonly number: number; readonly files: Manifest } | null;
  /** True when a file, a redirect or the fallback to the start page responds to this URL path, which begins with `/`. */
  readonly isAnswered: (path: string, isDocument: boolean) => boolean;
  readonly read: (digest: string) => Promise<AsyncIterable<Buffer>>;
}): Promise<VersionReport> {
  const { files, before, isAnswered, read } = deps;
  const found = {
    brokenLinks: new Findings(),
    absolutePaths: new Findings(),
    mixedContent: new Findings(),
  };
  const folders = new Set([...files.keys()].map((path) => path.split('/', 1)[0] ?? ''));
  const pages = [...files].filter(([path]) => /\.x?html?$/i.test(path));
  /** Links by digest: several addresses may have the same page. */
  const known = new Map<string, LinksFound>();
  let [seen, bytes, links, comparisons, isWhole] = [0, 0, 0, 0, true];
  for (const [page, { digest, size }] of pages) {
    const earlier = known.get(digest);
    if (earlier === undefined) bytes += size;
    if (seen >= maxPages || bytes > maxBytes || comparisons > maxComparisons) break;
    seen += 1;
    const most = { links: maxLinks - links, comparisons: maxComparisons - comparisons };
    const inPage = earlier ?? (await linksIn(await read(digest), most));
    known.set(digest, inPage);
    if (earlier === undefined) comparisons += inPage.comparisons;
    links += inPage.links.length;
    isWhole &&= inPage.isWhole;
    for (const [at, link] of inPage.links.entries()) {
      if (at % linksAtOnce === 0) await othersFirst();
      const problem = problemOf(link, page, folders, isAnswered);
      if (problem !== undefined) found[problem].add({ page, target: link.target });
    }
  }
  const isComplete = isWhole && seen === pages.length && Object.values(found).every((list) => !list.isCut);
  return {
    against: before?.number ?? null,
    ...changesBetween(before?.files ?? new Map(), files),
    brokenLinks: found.brokenLinks.all,
    absolutePaths: found.absolutePaths.all,
    mixedContent: found.mixedContent.all,
    isComplete,
  };
}

/** Lists each finding once, up to the limit. */
class Findings {
  readonly all: Finding[] = [];
  readonly #known = new Set<string>();
  isCut = false;

  add({ page, target }: Finding): void {
    const shown = target.length > maxTargetLength ? `${target.slice(0, maxTargetLength)}…` : target;
    const key = `${page}\n${shown}`;
    if (this.#known.has(key)) return;
    if (this.all.length >= maxListed) {
      this.isCut = true;
      return;
    }
    this.#known.add(key);
    this.all.push({ page, target: shown });
  }
}

function changesBetween(
  before: Manifest,
  after: Manifest,
): Pick<VersionReport, 'added' | 'changed' | 'removed' | 'sizeChange'> {
  const sizeOf = (files: Manifest) => [...files.values()].reduce((sum, { size }) => sum + size, 0);
  const added = [...after.keys()].filter((path) => !before.has(path));
  const removed = [...before.keys()].filter((path) => !after.has(path));
  const changed = [...after]
    .filter(([path, { digest }]) => before.has(path) && before.get(path)?.digest !== digest)
    .map(([path]) => path);
  const list = (names: string[]): NameList => ({ count: names.length, names: names.slice(0, maxListed) });
  return {
    added: list(added),
    changed: list(changed),
    removed: list(removed),
    sizeChange: sizeOf(after) - sizeOf(before),
  };
}

type Link = {
  /** Target in the spelling of the page. */
  readonly target: string;
  readonly kind: 'page' | 'part';
  /** URL of the page's `base` element. */
  readonly base: string | undefined;
};

/** Attributes that link to another page, and attributes whose target is loaded as a part of this one. */
const pageLinks: Readonly<Record<string, string>> = { a: 'href', area: 'href', form: 'action' };
const partLinks: Readonly<Record<string, readonly string[]>> = {
  script: ['src'],
  img: ['src', 'srcset'],
  source: ['src', 'srcset'],
  iframe: ['src'],
  frame: ['src'],
  video: ['src', 'poster'],
  audio: ['src'],
  track: ['src'],
  embed: ['src'],
  object: ['data'],
  input: ['src'],
};
/** Relations of `link` that are loaded with the page; `canonical` and similar ones only name an address. */
const loadedRelations = /\b(?:stylesheet|icon|preload|modulepreload|manifest|prefetch|apple-touch-icon)\b/i;

type LinksFound = {
  readonly links: readonly Link[];
  readonly comparisons: number;
  readonly isWhole: boolean;
};

async function linksIn(
  html: AsyncIterable<Buffer>,
  most: { readonly links: number; readonly comparisons: number },
): Promise<LinksFound> {
  const found: Omit<Link, 'base'>[] = [];
  let base: string | undefined;
  let depth = 0;
  let deepestInPiece = 0;
  let comparisons = 0;
  let isWhole = true;
  let isGivenUp = false;
  /** Pauses immediately; otherwise the parser would read the rest of the piece too. */
  const giveUp = () => {
    isGivenUp = true;
    isWhole = false;
    parser.pause();
  };
  const fits = (text: string | undefined, longest: number): text is string => {
    if (text === undefined || text === '') return false;
    isWhole &&= text.length <= longest;
    return text.length <= longest;
  };
  const parser = new Parser({
    onclosetag() {
      depth -= 1;
    },
    onopentag(name, attributes) {
      depth += 1;
      deepestInPiece = Math.max(deepestInPiece, depth);
      if (depth > deepest || found.length > most.links) giveUp();
      const add = (kind: Link['kind'], target: string | undefined) => {
        const text = target?.trim();
        if (fits(text, maxLinkLength) && found.length <= most.links) found.push({ kind, target: text });
      };
      const href = attributes['href']?.trim();
      if (name === 'base' && fits(href, maxLinkLength)) base ??= href;
      if (name === 'link')
        add(loadedRelations.test(attributes['rel'] ?? '') ? 'part' : 'page', attributes['href']);
      const page = pageLinks[name];
      if (page !== undefined) add('page', attributes[page]);
      for (const attribute of partLinks[name] ?? []) {
        const value = attributes[attribute];
        if (attribute !== 'srcset') add('part', value);
        else if (fits(value, maxListLength)) for (const one of candidatesOf(value)) add('part', one);
      }
    },
  });
  const decoder = new TextDecoder();
  for await (const piece of inPieces(html)) {
    deepestInPiece = depth;
    const markup = decoder.decode(piece, { stream: true });
    parser.write(markup);
    comparisons += markup.split('<').length * deepestInPiece;
    if (comparisons > most.comparisons) giveUp();
    if (isGivenUp) break;
  }
  if (!isGivenUp) parser.end(decoder.decode());
  isWhole &&= found.length <= most.links;
  const links = found.slice(0, most.links).map((link) => ({ ...link, base }));
  return { links, comparisons, isWhole };
}

async function* inPieces(html: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of html) {
    for (let at = 0; at < chunk.length; at += bytesAtOnce) {
      await othersFirst();
      yield chunk.subarray(at, at + bytesAtOnce);
    }
  }
}

/** The addresses of a `srcset`: each may be followed by a width or a density. */
function candidatesOf(srcset: string): string[] {
  if (/^\s*data:/i.test(srcset)) return [];
  return srcset.split(',').map((candidate) => candidate.trim().split(/\s/, 1)[0] ?? '');
}

const site = 'https://site.invalid';
const localHost = /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\]|0\.0\.0\.0)$/;

function problemOf(
  { target, kind, base }: Link,
  page: string,
  folders: ReadonlySet<string>,
  isAnswered: (path: string, isDocument: boolean) => boolean,
): 'brokenLinks' | 'absolutePaths' | 'mixedContent' | undefined {
  if (/^file:/i.test(target) || /^[a-z]:[\\/]/i.test(target) || target.startsWith('\\\\'))
    return 'absolutePaths';
  const own = `${site}/${page.split('/').map(encodeURIComponent).join('/')}`;
  const from = base !== undefined && URL.canParse(base, own) ? new URL(base, own).href : own;
  if (!URL.canParse(target, from)) return 'brokenLinks';
  const url = new URL(target, from);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined;
  if (localHost.test(url.hostname)) return 'absolutePaths';
  if (url.origin !== site) return kind === 'part' && url.protocol === 'http:' ? 'mixedContent' : undefined;
  // The service itself responds here.
  if (url.pathname.startsWith('/.postern/')) return undefined;
  if (isAnswered(url.pathname, kind === 'page')) return undefined;
  return isOtherRoot(target, url, folders) ? 'absolutePaths' : 'brokenLinks';
}

/** `/project/app.js` in a site without a folder `project`: the page was built for a host that serves it below a folder. */
function isOtherRoot(target: string, { pathname }: URL, folders: ReadonlySet<string>): boolean {
  if (!target.startsWith('/')) return false;
  const [, first = '', ...rest] = pathname.split('/');
  return rest.length > 0 && !folders.has(decoded(first));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
