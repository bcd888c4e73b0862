import {
  addHeaders,
  addRedirect,
  asList,
  asMap,
  asText,
  type Collected,
  type HostFile,
  noCounterpart,
} from './host-rules.ts';

/** What vercel.json says. @throws Error when it is not JSON */
export function fromVercel(text: string): HostFile {
  const file = asMap(JSON.parse(text));
  const into: Collected = { redirects: [], headers: [], spa: false, untranslated: [] };
  for (const [at, one] of asList(file['redirects']).entries()) redirect(into, `redirects[${at}]`, asMap(one));
  for (const [at, one] of asList(file['rewrites']).entries()) rewrite(into, `rewrites[${at}]`, asMap(one));
  for (const [at, one] of asList(file['headers']).entries()) headers(into, `headers[${at}]`, asMap(one));
  if (file['cleanUrls'] === false)
    into.untranslated.push({ where: 'cleanUrls', why: 'Sites always answer at /about for about.html.' });
  for (const name of Object.keys(file))
    if (!known.includes(name)) into.untranslated.push({ where: name, why: noCounterpart });
  return {
    ...into,
    build: {
      command: asText(file['buildCommand']),
      directory: undefined,
      output: asText(file['outputDirectory']),
      node: undefined,
    },
  };
}

/** Translated, or only about how the other host builds and names the project. */
const known = [
  '$schema',
  'version',
  'name',
  'redirects',
  'rewrites',
  'headers',
  'cleanUrls',
  'buildCommand',
  'outputDirectory',
  'installCommand',
  'devCommand',
  'ignoreCommand',
  'framework',
  'public',
  'git',
  'github',
];

type Rule = Readonly<Record<string, unknown>>;

function redirect(into: Collected, where: string, rule: Rule): void {
  const { source, destination, permanent = true, statusCode, ...more } = rule;
  const path = pathOf(into, where, source, more);
  if (path === undefined) return;
  const to = String(destination).replaceAll(path.rest, ':splat');
  if (/:\w+[*+?(]|\$\d/.test(to)) {
    into.untranslated.push({
      where,
      why: 'The target uses a part of the path that the site does not capture.',
    });
    return;
  }
  const status = Number(statusCode ?? (permanent === true ? 308 : 307));
  addRedirect(into, where, { from: path.from, to, status });
}

function rewrite(into: Collected, where: string, { source, destination, ...more }: Rule): void {
  const isAll = ['/(.*)', '/:path*', '/:match*'].includes(String(source));
  if (isAll && destination === '/index.html' && Object.keys(more).length === 0) into.spa = true;
  else
    into.untranslated.push({
      where,
      why: 'Sites have no rewrites, except every address to /index.html (spa).',
    });
}

function headers(into: Collected, where: string, { source, headers: given, ...more }: Rule): void {
  const path = pathOf(into, where, source, more);
  if (path === undefined) return;
  if (/\/:/.test(path.from)) {
    into.untranslated.push({ where, why: 'A path of headers has only *.' });
    return;
  }
  const pairs = asList(given).map((one) => [String(asMap(one)['key']), asMap(one)['value']] as const);
  addHeaders(into, where, path.from, pairs);
}

/** A path with at most a wildcard at its end; `rest` is how the target names what the wildcard matched. */
function pathOf(
  into: Collected,
  where: string,
  source: unknown,
  more: Rule,
): { readonly from: string; readonly rest: string } | undefined {
  const conditions = Object.keys(more);
  const [, before, name] = /^(.*\/)(?::(\w+)\*|\(\.\*\))$/.exec(String(source)) ?? [];
  const from = before === undefined ? String(source) : `${before}*`;
  const isPlain = /^\/[^(){}\\+?$]*$/.test(from) && !/:\w+\*/.test(from);
  if (conditions.length === 0 && isPlain) return { from, rest: name === undefined ? '$1' : `:${name}*` };
  const why =
    conditions.length > 0 ? `A rule has no ${conditions.join(', ')}.` : 'The path is a regular expression.';
  into.untranslated.push({ where, why });
  return undefined;
}
