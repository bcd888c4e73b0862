/**
 * What the configuration of another host says about redirects and headers, as Sites understand it: lines of `_redirects`
 * and `_headers`, and the switch `spa`. What has no counterpart is named, and never left out in silence.
 */
export type HostRules = {
  readonly redirects: readonly string[];
  readonly headers: readonly string[];
  readonly spa: boolean;
  readonly untranslated: readonly Untranslated[];
};

export type Untranslated = { readonly where: string; readonly why: string };

export const noCounterpart = 'Postern has no counterpart.';

/** A configuration of another host. */
export type HostFile = HostRules & {
  /** How the files are made, from the folder of the configuration. */
  readonly build: {
    readonly command: string | undefined;
    readonly directory: string | undefined;
    readonly output: string | undefined;
    readonly node: string | undefined;
  };
};

export type Collected = {
  redirects: string[];
  headers: string[];
  spa: boolean;
  untranslated: Untranslated[];
};

const statuses = [301, 302, 303, 307, 308];
const maxSegments = 25;

/** Adds a redirect, or the reason why it cannot be one of a site. */
export function addRedirect(
  into: Collected,
  where: string,
  { from, to, status }: { from: string; to: string; status: number },
): void {
  const why = redirectProblem(from, to, status);
  if (why === undefined) into.redirects.push(`${from} ${to} ${status}`);
  else into.untranslated.push({ where, why });
}

function redirectProblem(from: string, to: string, status: number): string | undefined {
  if (!/^\/[^\s?#]*$/.test(from)) return 'A redirect begins with a path of the site.';
  const segments = from.slice(1).split('/');
  if (segments.length > maxSegments) return `The path has more than ${maxSegments} segments.`;
  const inner = from.endsWith('/*') ? segments.slice(0, -1) : segments;
  if (inner.some((one) => one.includes('*'))) return 'Only the last segment of the path can be a wildcard.';
  if (!statuses.includes(status)) return `Sites have redirects only, not rules with the status ${status}.`;
  if (!/^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/.test(to)) return 'A redirect must lead to a path of the same site.';
  if (to.length > 1_000 || /%(?:5c|0[0-9a-d]|2f)/i.test(to))
    return 'The target is not one that Sites accept.';
  return undefined;
}

/** Adds the headers of a path; `path` may contain `*`. */
export function addHeaders(
  into: Collected,
  where: string,
  path: string,
  headers: readonly (readonly [name: string, value: unknown])[],
): void {
  if (!/^\/\S*$/.test(path)) {
    into.untranslated.push({ where, why: 'Headers need a path of the site.' });
    return;
  }
  const lines: string[] = [];
  for (const [name, value] of headers) {
    const why = headerProblem(name.toLowerCase(), value);
    if (why === undefined) lines.push(`  ${name}: ${String(value).trim()}`);
    else into.untranslated.push({ where: `${where} ${name}`, why });
  }
  if (lines.length > 0) into.headers.push(path, ...lines);
}

const settable = [
  'content-security-policy',
  'content-language',
  'x-robots-tag',
  'permissions-policy',
  'referrer-policy',
];
/** Headers that a site accepts with these values only. */
const withValues: Readonly<Record<string, readonly string[]>> = {
  'x-content-type-options': ['nosniff'],
  'x-frame-options': ['DENY', 'SAMEORIGIN'],
  'cross-origin-opener-policy': ['same-origin', 'same-origin-allow-popups', 'noopener-allow-popups'],
  'cross-origin-embedder-policy': ['require-corp', 'credentialless'],
  'cross-origin-resource-policy': ['same-origin', 'same-site'],
  'origin-agent-cluster': ['?1'],
  'x-permitted-cross-domain-policies': ['none'],
  'access-control-allow-origin': ['*'],
};
const featuresOff = ['camera', 'microphone', 'geolocation', 'usb', 'payment'];

function headerProblem(name: string, value: unknown): string | undefined {
  const values = Object.hasOwn(withValues, name) ? withValues[name] : undefined;
  if (values !== undefined)
    return values.some((one) => one.toLowerCase() === String(value).trim().toLowerCase())
      ? undefined
      : `A site can set it only to ${values.join(' or ')}.`;
  if (!settable.includes(name))
    return `A site cannot set it. It can set ${[...settable, ...Object.keys(withValues)].join(', ')}.`;
  if (typeof value !== 'string' || !/^[\x20-\x7e]{1,2000}$/.test(value.trim()))
    return 'The value is not one line of at most 2000 characters.';
  if (name === 'permissions-policy' && !value.split(',').every(isTighter))
    return 'Sites accept feature=() and feature=(self), and some features stay off.';
  const policies =
    /^(?:no-referrer|no-referrer-when-downgrade|origin|origin-when-cross-origin|same-origin|strict-origin|strict-origin-when-cross-origin)$/i;
  if (name === 'referrer-policy' && !value.split(',').every((one) => policies.test(one.trim())))
    return 'Sites do not accept this policy.';
  return undefined;
}

function isTighter(text: string): boolean {
  const [, feature = '', list = ''] =
    /^([a-z][a-z0-9-]*)=(\( *\)|\( *self *\)|self)$/.exec(text.trim()) ?? [];
  return feature !== '' && !(featuresOff.includes(feature) && list.includes('self'));
}

/** A map, or an empty one for anything else. */
export function asMap(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
