import { parse } from 'smol-toml';
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

/** What netlify.toml says. @throws Error when it is not TOML */
export function fromNetlify(text: string): HostFile {
  const file = asMap(parse(text));
  const { build: ofBuild, redirects, headers, ...others } = file;
  const build = asMap(ofBuild);
  const into: Collected = { redirects: [], headers: [], spa: false, untranslated: [] };
  for (const [at, one] of asList(redirects).entries()) redirect(into, `redirects[${at}]`, asMap(one));
  for (const [at, one] of asList(headers).entries()) {
    const { for: path, values } = asMap(one);
    const where = `headers[${at}]`;
    if (/\/:/.test(String(path))) into.untranslated.push({ where, why: 'A path of headers has only *.' });
    else addHeaders(into, where, String(path), Object.entries(asMap(values)));
  }
  for (const name of Object.keys(others)) into.untranslated.push({ where: name, why: noCounterpart });
  for (const name of Object.keys(build))
    if (!ofBuilds.includes(name)) into.untranslated.push({ where: `build.${name}`, why: noCounterpart });
  return {
    ...into,
    build: {
      command: asText(build['command']),
      directory: asText(build['base']),
      output: asText(build['publish']),
      node: asText(asMap(build['environment'])['NODE_VERSION']),
    },
  };
}

const ofBuilds = ['command', 'base', 'publish', 'environment'];

function redirect(into: Collected, where: string, rule: Readonly<Record<string, unknown>>): void {
  const { from, to, status = 301, force, ...more } = rule;
  const given = Object.keys(more);
  if (typeof from !== 'string' || typeof to !== 'string' || given.length > 0) {
    const why = given.length > 0 ? `A redirect has no ${given.join(', ')}.` : 'from or to is missing.';
    into.untranslated.push({ where, why });
    return;
  }
  if (from === '/*' && to === '/index.html' && status === 200) {
    into.spa = true;
    return;
  }
  // Sites show the nearest 404.html anyway.
  if (from === '/*' && to === '/404.html' && status === 404) return;
  addRedirect(into, where, { from, to, status: Number(status) });
  if (force === true)
    into.untranslated.push({
      where: `${where} force`,
      why: 'Where the site has a file, the file is served.',
    });
}
