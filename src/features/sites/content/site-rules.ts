/**
 * What authors may write in `_redirects` and `_headers`: a small, safe subset of what other hosts accept there. Targets
 * stay on the site (threat T46), and headers only add, isolate or tighten (threat T45). A line outside the subset is not
 * applied, and a warning of the version names it, because authors often wrote these files for another host.
 */
export type RedirectRule = {
  /** Path segments; `:name` matches one, a final `*` matches the rest. */
  readonly from: readonly string[];
  readonly to: string;
  readonly status: 301 | 302 | 303 | 307 | 308;
};

export type HeaderRule = {
  readonly pattern: { test(path: string): boolean };
  readonly headers: readonly (readonly [name: string, value: string])[];
};

/** A line that is not applied, or not as it is written. `problem` completes the sentence "It …". */
export type RuleProblem = {
  readonly line: number;
  readonly problem: string;
  /** True: the line applies while the site is public. */
  readonly onlyPrivate?: true;
};

export const redirectsFile = '_redirects';
export const headersFile = '_headers';
/** Bytes. */
export const maxRulesBytes = 65_536;
const maxRules = 1_000;
const maxHeaderRules = 100;
const maxValueLength = 2_000;
const maxHeadersOfPath = 50;
/** Characters, names included. */
const maxHeadersOfPathLength = 8_192;
/** Characters of a redirect's target, and of an address that is redirected: a redirect must cost next to nothing. */
const maxTargetLength = 1_000;
const maxRedirectedLength = 1_024;
const maxPlaceholders = 10;
/** Length in characters of a header that every proxy accepts. */
const maxLocationLength = 8_000;
/**
 * Rules that match an address without giving a usable target, before the address counts as missing: each costs as much
 * as a usable rule.
 */
const maxInVain = 10;

export type Redirects = {
  readonly rules: readonly RedirectRule[];
  /** True: a line such as `/* /index.html 200` asks for the start page at every address without a file. */
  readonly spa: boolean;
  readonly problems: readonly RuleProblem[];
};

export function parseRedirects(text: string): Redirects {
  const rules: RedirectRule[] = [];
  const problems: RuleProblem[] = [];
  let spa = false;
  for (const { line, words } of linesOf(text)) {
    const [from, to, written = '301', ...more] = words;
    const isForced = /^\d+!$/.test(written);
    const status = isForced ? written.slice(0, -1) : written;
    const isSpa = from === '/*' && startPages.has(to ?? '') && status === '200' && more.length === 0;
    const rule = isSpa ? 'spa' : redirectOf([from ?? '', to ?? '', status, ...more]);
    const isRule = typeof rule !== 'string';
    if (isRule && rules.length === maxRules) {
      problems.push({ line, problem: `exceeds the maximum of ${maxRules} rules, like every line after it` });
      break;
    }
    if (isRule) rules.push(rule);
    else if (isSpa) spa = true;
    else problems.push({ line, problem: rule });
    if (isForced && (isRule || isSpa))
      problems.push({
        line,
        problem: `has the status ${written}; it applies without the !, where no file answers`,
      });
  }
  return { rules, spa, problems };
}

/** Targets that mean the start page in a line that other hosts read as a rewrite of every address. */
const startPages: ReadonlySet<string> = new Set(['/', '/index.html', '/200.html']);

function redirectOf([from = '', to = '', status = '', ...more]: readonly string[]): RedirectRule | string {
  if (more.length > 0) return 'has more parts than "from to status"';
  if (!from.startsWith('/')) return 'must begin with a path of this site, such as /old';
  const target = targetProblem(to);
  if (target !== undefined) return target;
  const code = redirectStatuses.find((one) => String(one) === status);
  if (code === undefined)
    return `has the status ${status.slice(0, 20).toWellFormed()}; use 301, 302, 303, 307 or 308, or "/* /index.html 200" for an app with client-side routing`;
  const segments = pathIn(from)?.slice(1).split('/');
  if (segments === undefined) return undecodable;
  if (segments.length > 25) return 'has more than 25 path segments';
  if (segments.slice(0, -1).includes('*')) return 'has a * that is not at the end of its path';
  // A header can carry only ASCII.
  return { from: segments, to: to.replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent), status: code };
}

const undecodable =
  'has a path that no address has: it holds ? or #, a % that encodes no character, or an encoded /, *, : or control character';

/**
 * A path as authors write it, decoded once as the path of a request is (serving/paths.ts). Undefined when it could match
 * no request, or when its decoded form would be a wildcard.
 */
function pathIn(written: string): string | undefined {
  if (/[?#]|%(?:2[af]|3a|5c)/i.test(written)) return undefined;
  try {
    const path = decodeURIComponent(written).normalize('NFC');
    return /[\p{Cc}\p{Cs}\u2028\u2029\\]/u.test(path) ? undefined : path;
  } catch {
    return undefined;
  }
}

const redirectStatuses = [301, 302, 303, 307, 308] as const;

function targetProblem(to: string): string | undefined {
  if (to === '') return 'has no target';
  if (to.length > maxTargetLength) return `has a target longer than ${maxTargetLength} characters`;
  if ((to.match(placeholder)?.length ?? 0) > maxPlaceholders)
    return `has more than ${maxPlaceholders} placeholders in its target`;
  return shapeProblem(to);
}

const placeholder = /:(\w+)/g;

function shapeProblem(to: string): string | undefined {
  if (!to.startsWith('/') || to.startsWith('//'))
    return 'redirects to another host; a target must stay on the site and begin with one slash';
  // Characters that some browsers read as a slash, or that end a header.
  if (/[\\\p{Cc}\p{Cf}\s]/u.test(to) || /%(?:5c|0[0-9a-d]|2f)/i.test(to))
    return 'has a target with characters that browsers interpret in different ways';
  return undefined;
}

/** The target of the first matching rule for a path, or undefined. */
export function followRedirects(
  rules: readonly RedirectRule[],
  path: string,
): { readonly to: string; readonly status: number } | undefined {
  if (path.length > maxRedirectedLength) return undefined;
  const segments = path.split('/');
  const encoded = segments.map(encodeURIComponent);
  let inVain = 0;
  for (const { from, to, status } of rules) {
    if (!matches(from, segments)) continue;
    const values = valuesOf(from, encoded);
    const target = to.replaceAll(placeholder, (whole, name: string) => values.get(name) ?? whole);
    if (target.length > maxLocationLength) return undefined;
    // The text that a wildcard matched could turn the target into another host.
    if (shapeProblem(target) === undefined && target !== `/${path}`) return { to: target, status };
    inVain += 1;
    if (inVain === maxInVain) return undefined;
  }
  return undefined;
}

function matches(from: readonly string[], segments: readonly string[]): boolean {
  const fixed = from.length - (from.at(-1) === '*' ? 1 : 0);
  if (fixed < from.length ? segments.length < fixed : segments.length !== fixed) return false;
  for (let at = 0; at < fixed; at += 1) {
    if (from[at] !== segments[at] && !from[at]?.startsWith(':')) return false;
  }
  return true;
}

function valuesOf(from: readonly string[], encoded: readonly string[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const [at, want] of from.entries()) {
    if (want.startsWith(':')) values.set(want.slice(1), encoded[at] ?? '');
  }
  if (from.at(-1) === '*') values.set('splat', encoded.slice(from.length - 1).join('/'));
  return values;
}

/** What a header may have as its value. A second Content-Security-Policy can only forbid more (CSP3 section 3.3). */
const valueProblems: Readonly<Record<string, (value: string) => string | undefined>> = {
  'content-security-policy': anything,
  'content-language': anything,
  'x-robots-tag': anything,
  'permissions-policy': permissionsProblem,
  'referrer-policy': referrerProblem,
  'x-content-type-options': only('nosniff'),
  'x-frame-options': only('DENY', 'SAMEORIGIN'),
  'cross-origin-opener-policy': only('same-origin', 'same-origin-allow-popups', 'noopener-allow-popups'),
  'cross-origin-embedder-policy': only('require-corp', 'credentialless'),
  'cross-origin-resource-policy': only('same-origin', 'same-site'),
  'origin-agent-cluster': only('?1'),
  'x-permitted-cross-domain-policies': only('none'),
  'access-control-allow-origin': only('*'),
};

/** Headers that the gateway sends with every file, with the only value that authors may set. */
const sentAnyway: ReadonlySet<string> = new Set(['x-content-type-options', 'origin-agent-cluster']);

/** Headers that the gateway does not send on a private site, because they let pages of every site read the file. */
const onPublicSitesAlone: ReadonlySet<string> = new Set(['access-control-allow-origin']);

function only(...values: readonly string[]): (value: string) => string | undefined {
  const lower = values.map((one) => one.toLowerCase());
  return (value) =>
    lower.includes(value.toLowerCase()) ? undefined : `has a value that is not ${values.join(' or ')}`;
}

function anything(): undefined {
  return undefined;
}

/** Disabled on every site, whatever its author sets. */
export const featuresOff: readonly string[] = [
  'camera',
  'microphone',
  'geolocation',
  'usb',
  'payment',
  // The host of the web app can be a parent of a content host, and then its passkeys would be offered there.
  'publickey-credentials-get',
  'publickey-credentials-create',
];

/**
 * Parsed strictly: a browser discards the whole header, including our own directives, when it does not recognise a
 * part. A feature is allowed to the site itself by default, so these two values can only tighten.
 */
function permissionsProblem(value: string): string | undefined {
  for (const one of value.split(',')) {
    const [, feature, list] = /^([a-z][a-z0-9-]*)=(\( *\)|\( *self *\)|self)$/.exec(one.trim()) ?? [];
    if (feature === undefined || list === undefined)
      return 'has a Permissions-Policy that is not a list of feature=() and feature=(self), such as fullscreen=(), gamepad=(self)';
    if (featuresOff.includes(feature) && list.includes('self'))
      return `allows ${feature}, which is disabled on every site; leave it out or write ${feature}=()`;
  }
  return undefined;
}

/** All policies (Referrer Policy, section 3) except `unsafe-url`, which sends the whole address to every site. */
const referrerPolicies = new Set([
  'no-referrer',
  'no-referrer-when-downgrade',
  'origin',
  'origin-when-cross-origin',
  'same-origin',
  'strict-origin',
  'strict-origin-when-cross-origin',
]);

function referrerProblem(value: string): string | undefined {
  const isKnown = value.split(',').every((one) => referrerPolicies.has(one.trim().toLowerCase()));
  return isKnown ? undefined : `has a Referrer-Policy that is not one of ${[...referrerPolicies].join(', ')}`;
}

export function parseHeaders(text: string): { rules: HeaderRule[]; problems: RuleProblem[] } {
  const rules: { pattern: HeaderRule['pattern']; headers: [string, string][] }[] = [];
  const problems: RuleProblem[] = [];
  /** Null below a path that is not applied: its headers belong to no other path. */
  let current: (typeof rules)[number] | null | undefined;
  for (const { line, raw } of linesOf(text)) {
    if (!/^\s/.test(raw)) {
      const path = pathIn(raw.trim());
      current = null;
      if (path === undefined)
        problems.push({ line, problem: `${undecodable}, so the headers below it are not applied either` });
      else if (!path.startsWith('/'))
        problems.push({
          line,
          problem: 'is not a path that begins with a slash, so the headers below it are not applied either',
        });
      else if (rules.length === maxHeaderRules) {
        problems.push({
          line,
          problem: `exceeds the maximum of ${maxHeaderRules} paths, like every line after it`,
        });
        return { rules, problems };
      } else rules.push((current = { pattern: patternOf(path), headers: [] }));
      continue;
    }
    if (current === null) continue;
    const header = headerOf(raw.trim());
    if (typeof header === 'string') problems.push({ line, problem: header });
    else if (current === undefined) problems.push({ line, problem: 'sets a header before the first path' });
    else if (sentAnyway.has(header[0])) continue;
    else if (fit([...current.headers, header])) {
      current.headers.push(header);
      if (onPublicSitesAlone.has(header[0]))
        problems.push({
          line,
          problem: `sets ${header[0]}, which only public sites send`,
          onlyPrivate: true,
        });
    } else
      problems.push({
        line,
        problem: `exceeds the maximum of ${maxHeadersOfPath} headers, or ${maxHeadersOfPathLength} characters of headers, for a path`,
      });
  }
  return { rules, problems };
}

function fit(headers: readonly (readonly [name: string, value: string])[]): boolean {
  const bytes = headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  return headers.length <= maxHeadersOfPath && bytes <= maxHeadersOfPathLength;
}

function headerOf(text: string): [string, string] | string {
  const found = /^([\w-]{1,60}):\s*(.*)$/.exec(text);
  const name = found?.[1]?.toLowerCase();
  const value = found?.[2] ?? '';
  if (name === undefined) return 'is not "Name: value"';
  const problemOf = Object.hasOwn(valueProblems, name) ? valueProblems[name] : undefined;
  if (problemOf === undefined)
    return `sets ${name}; only ${Object.keys(valueProblems).join(', ')} can be set`;
  if (value === '' || value.length > maxValueLength)
    return `must have a value of 1 to ${maxValueLength} characters`;
  if (!/^[\x20-\x7e]+$/.test(value)) return 'has a value with characters that a header cannot contain';
  const problem = problemOf(value);
  return problem === undefined ? [name, value] : problem;
}

/**
 * `*` matches any characters. Compared piece by piece and never by a regular expression: a few wildcards could make one
 * run practically forever, and block all other requests.
 */
function patternOf(path: string): HeaderRule['pattern'] {
  const [first = '', ...rest] = path.slice(1).split('*');
  const last = rest.pop();
  return {
    test(name) {
      if (last === undefined) return name === first;
      if (!name.startsWith(first)) return false;
      let at = first.length;
      for (const piece of rest) {
        const found = name.indexOf(piece, at);
        if (found < 0) return false;
        at = found + piece.length;
      }
      return name.length - last.length >= at && name.endsWith(last);
    },
  };
}

/** The lines without comments and empty lines; numbered from 1. */
function* linesOf(text: string): Generator<{ line: number; raw: string; words: string[] }> {
  for (const [at, raw] of text.split(/\r\n|\n|\r/).entries()) {
    const isComment = raw.trim() === '' || raw.trimStart().startsWith('#');
    if (!isComment) yield { line: at + 1, raw, words: raw.trim().split(/\s+/) };
  }
}
