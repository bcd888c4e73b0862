/**
 * What authors may write in `_redirects` and `_headers`: a small, safe subset of what other hosts accept there. Targets
 * stay on the site (threat T46), and headers only add or tighten (threat T45). A line that breaks a rule refuses the
 * upload. In a version published before the rule existed, such a line is ignored.
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

export type RuleProblem = { readonly line: number; readonly problem: string };

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

export function parseRedirects(text: string): { rules: RedirectRule[]; problems: RuleProblem[] } {
  const rules: RedirectRule[] = [];
  const problems: RuleProblem[] = [];
  for (const { line, words } of linesOf(text)) {
    const rule = redirectOf(words);
    if (typeof rule === 'string') problems.push({ line, problem: rule });
    else if (rules.length === maxRules)
      return {
        rules,
        problems: [...problems, { line, problem: `exceeds the maximum of ${maxRules} rules` }],
      };
    else rules.push(rule);
  }
  return { rules, problems };
}

function redirectOf([from = '', to = '', status = '301', ...more]: readonly string[]): RedirectRule | string {
  if (more.length > 0) return 'has more parts than "from to status"';
  if (!from.startsWith('/')) return 'must begin with a path of this site, such as /old';
  const target = targetProblem(to);
  if (target !== undefined) return target;
  const code = redirectStatuses.find((one) => String(one) === status);
  if (code === undefined) return `has the status ${status}; use 301, 302, 303, 307 or 308`;
  const segments = from.slice(1).split('/');
  if (segments.length > 25) return 'has more than 25 path segments';
  if (segments.slice(0, -1).includes('*')) return 'has a * that is not at the end of its path';
  // A header can carry only ASCII.
  return { from: segments, to: to.replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent), status: code };
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

/** A second Content-Security-Policy can only forbid more than the first (CSP3 section 3.3). */
const valueProblems: Readonly<Record<string, (value: string) => string | undefined>> = {
  'content-security-policy': anything,
  'content-language': anything,
  'x-robots-tag': anything,
  'permissions-policy': permissionsProblem,
  'referrer-policy': referrerProblem,
};

function anything(): undefined {
  return undefined;
}

/** Disabled on every site, whatever its author sets. */
export const featuresOff: readonly string[] = ['camera', 'microphone', 'geolocation', 'usb', 'payment'];

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
  for (const { line, raw } of linesOf(text)) {
    if (!/^\s/.test(raw)) {
      const path = raw.trim();
      if (!path.startsWith('/')) problems.push({ line, problem: 'must be a path that begins with a slash' });
      else if (rules.length === maxHeaderRules) {
        problems.push({ line, problem: `exceeds the maximum of ${maxHeaderRules} paths` });
        return { rules, problems };
      } else rules.push({ pattern: patternOf(path), headers: [] });
      continue;
    }
    const header = headerOf(raw.trim());
    const rule = rules.at(-1);
    if (typeof header === 'string') problems.push({ line, problem: header });
    else if (rule === undefined) problems.push({ line, problem: 'sets a header before the first path' });
    else if (fit([...rule.headers, header])) rule.headers.push(header);
    else
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
  return problemOf(value) ?? [name, value];
}

/**
 * `*` matches any characters. Compared piece by piece and never by a regular expression: a few wildcards could make one
 * run practically for ever, and block all other requests.
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
