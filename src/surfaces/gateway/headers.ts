import type { ServedContent, ServedFile } from '../../features/sites/sites.ts';
import { mediaTypeOf } from '../../features/sites/sites.ts';
import type { Form } from './representation.ts';

/** The headers of content, the same for every file of a kind (private-access.md 2.1). Names in lower case. */
const always = [
  'x-content-type-options',
  'nosniff',
  'origin-agent-cluster',
  '?1',
  'permissions-policy',
  'camera=(), microphone=(), geolocation=(), usb=(), payment=()',
];

const whenPublic = [...always, 'cache-control', 'public, max-age=0, must-revalidate'];

/** `no-cache` would not do: history may show what a cache kept (RFC 9111 section 4.3). */
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

export type Kind = { readonly isPrivate: boolean; readonly isPreview: boolean; readonly isHttps: boolean };

/** What every answer of a kind carries, also one without content. */
export function siteHeaders({ isPrivate, isPreview, isHttps }: Kind): string[] {
  return [
    ...(isPrivate ? whenPrivate : whenPublic),
    ...(isPreview && !isPrivate ? ['x-robots-tag', 'noindex'] : []),
    ...(isHttps ? ['strict-transport-security', 'max-age=31536000'] : []),
  ];
}

/** Of one form of one file; the status and the range are added by who sends it. */
export function fileHeaders(kind: Kind, content: ServedContent, file: ServedFile, form: Form): string[] {
  const { type, isDownload } = mediaTypeOf(file.path);
  return [
    ...siteHeaders(kind),
    'content-type',
    type,
    ...(isDownload ? ['content-disposition', 'attachment'] : []),
    'etag',
    form.etag,
    'accept-ranges',
    'bytes',
    ...(file.variants.length > 0 ? ['vary', 'Accept-Encoding'] : []),
    ...(form.encoding === null ? [] : ['content-encoding', form.encoding]),
    ...ownHeaders(kind, content, file.path),
  ];
}

/** What the site's author wrote for this path. On private sites our own words stand (threat T45). */
function ownHeaders({ isPrivate }: Kind, { headers }: ServedContent, path: string): string[] {
  const found = headers.filter(({ pattern }) => pattern.test(path)).flatMap((rule) => rule.headers);
  return found
    .filter(([name]) => !isPrivate || (name !== 'referrer-policy' && name !== 'x-robots-tag'))
    .flat();
}
