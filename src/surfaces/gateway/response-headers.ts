import type { ServedContent, ServedFile } from '../../features/sites/sites.ts';
import { featuresOff, mediaTypeOf } from '../../features/sites/sites.ts';
import type { Form } from './representation.ts';

/** The headers of content, the same for every file of a kind (private-access.md 2.1). Names in lower case. */
const always = ['x-content-type-options', 'nosniff', 'origin-agent-cluster', '?1'];

const turnedOff = featuresOff.map((feature) => `${feature}=()`);
/** The Permissions-Policy of every response of a content host that has no author. */
export const permissionsPolicy = turnedOff.join(', ');

/** Limits of the author's headers in one response, names included; proxies turn a larger response into an error. */
const maxOwnHeaders = 50;
const maxOwnHeadersLength = 8_192;

const whenPublic = [...always, 'cache-control', 'public, max-age=0, must-revalidate'];

/** `no-cache` is not enough: the browser's history may show what a cache kept (RFC 9111 section 4.3). */
const whenPrivate = [
  ...always,
  'cache-control',
  'private, no-store',
  'cdn-cache-control',
  'no-store',
  'cross-origin-resource-policy',
  'same-origin',
  'cross-origin-opener-policy',
  'same-origin',
  'content-security-policy',
  "frame-ancestors 'self'",
  'referrer-policy',
  'same-origin',
  'x-robots-tag',
  'noindex',
];

export type Kind = {
  readonly isPrivate: boolean;
  /** Not to be found by search engines: a preview, or an Environment. */
  readonly isUnlisted: boolean;
  readonly isHttps: boolean;
};

/** Headers of every response of a kind, also of one without content. */
export function siteHeaders(
  { isPrivate, isUnlisted, isHttps }: Kind,
  permissions = permissionsPolicy,
): string[] {
  return [
    ...(isPrivate ? whenPrivate : whenPublic),
    'permissions-policy',
    permissions,
    ...(isUnlisted && !isPrivate ? ['x-robots-tag', 'noindex'] : []),
    ...(isHttps ? ['strict-transport-security', 'max-age=31536000'] : []),
  ];
}

/** Headers of one form of one file; the code that sends it adds the status and the range. */
export function fileHeaders(kind: Kind, content: ServedContent, file: ServedFile, form: Form): string[] {
  const { type, isDownload } = mediaTypeOf(file.path);
  const own = ownHeaders(kind, content, file.path);
  return [
    ...siteHeaders(kind, permissionsWith(own)),
    'content-type',
    type,
    ...(isDownload ? ['content-disposition', 'attachment'] : []),
    'etag',
    form.etag,
    'accept-ranges',
    'bytes',
    ...(file.variants.length > 0 ? ['vary', 'Accept-Encoding'] : []),
    ...(form.encoding === null ? [] : ['content-encoding', form.encoding]),
    ...own.filter(([name]) => name !== 'permissions-policy').flat(),
  ];
}

/** Merged into one header: with two, the last setting of a feature would win, and that is the author's. */
function permissionsWith(own: readonly OwnHeader[]): string | undefined {
  const written = own
    .filter(([name]) => name === 'permissions-policy')
    .flatMap(([, value]) => value.split(','));
  if (written.length === 0) return undefined;
  const pairs = [...written, ...turnedOff].map((one) => one.trim().split('=', 2));
  const features = new Map(pairs.map(([feature, allowed]) => [feature, allowed]));
  return Array.from(features, (pair) => pair.join('=')).join(', ');
}

type OwnHeader = ServedContent['headers'][number]['headers'][number];

/** Headers that a private site sends with our own value or not at all, because no other origin may read its files. */
const oursWhenPrivate: ReadonlySet<string> = new Set([
  'referrer-policy',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'access-control-allow-origin',
]);

/** Browsers ignore such a header when it comes twice, so the last rule that matches a path decides. */
const hasOneValue: ReadonlySet<string> = new Set([
  'x-frame-options',
  'x-permitted-cross-domain-policies',
  'cross-origin-opener-policy',
  'cross-origin-embedder-policy',
  'cross-origin-resource-policy',
  'access-control-allow-origin',
]);

/** The author's headers for this path. On private and unlisted content our own values take precedence (threat T45). */
function ownHeaders({ isPrivate, isUnlisted }: Kind, { headers }: ServedContent, path: string): OwnHeader[] {
  const found = headers.filter(({ pattern }) => pattern.test(path)).flatMap((rule) => rule.headers);
  const last = new Map(found.map(([name], at) => [name, at]));
  let room = maxOwnHeadersLength;
  return found
    .filter(([name], at) => !hasOneValue.has(name) || last.get(name) === at)
    .filter(([name]) => !isPrivate || !oursWhenPrivate.has(name))
    .filter(([name]) => !(isPrivate || isUnlisted) || name !== 'x-robots-tag')
    .slice(0, maxOwnHeaders)
    .filter(([name, value]) => (room -= name.length + value.length) >= 0);
}
