import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { stringify } from 'yaml';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Result } from '../print/output.ts';
import type { HostFile, Untranslated } from './host-rules.ts';
import { hostReaders, untranslatedText } from './host-files.ts';
import { fromLifecycle } from './lifecycle.ts';

/** What `import` can print. */
export type Part = 'postern.yaml' | '_redirects' | '_headers';
type Files = { readonly [Name in Part]?: string };

/** `postern import`. @throws Failure of the code 2 */
export async function importFile(path: string, part: Part): Promise<Result> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) throw wrongUsage('FILE cannot be read.');
  const { files, untranslated } = translated(basename(path), text);
  const others = Object.keys(files).filter((name) => name !== part);
  const isNothing = Object.keys(files).length === 0;
  return {
    data: { files, untranslated },
    ...(isNothing ? { failure: nothingTranslated(path) } : {}),
    text: files[part] ?? '',
    hint: [
      untranslatedText(path, untranslated),
      ...others.map((name) => `There is also ${name}: --part ${name}`),
    ]
      .filter(Boolean)
      .join('\n'),
  };
}

function translated(name: string, text: string): { files: Files; untranslated: readonly Untranslated[] } {
  try {
    if (/^lifecycle\.ya?ml$/.test(name)) {
      const { file, untranslated } = fromLifecycle(text);
      const isEmpty = Object.keys(file.services).length === 0;
      return { files: isEmpty ? {} : { 'postern.yaml': stringify(file) }, untranslated };
    }
    const read = hostReaders[name];
    if (read !== undefined) return ofHost(read(text));
  } catch (error) {
    throw wrongUsage(`FILE cannot be read: ${error instanceof Error ? error.message.split('\n')[0] : ''}`);
  }
  throw wrongUsage('FILE must be called lifecycle.yaml, netlify.toml or vercel.json.');
}

function nothingTranslated(path: string): Failure {
  return new Failure('nothing_translated', 1, `Nothing of ${path} could be translated.`, {
    hint: 'Write a postern.yaml by hand: docs/how-to/write-a-postern-yaml.md',
  });
}

function ofHost({ build, redirects, headers, spa, untranslated }: HostFile) {
  const { command, directory, output, node } = build;
  const image = { image: `node:${node?.replace(/^v/, '') ?? '24'}` };
  const web = {
    build: {
      ...(command === undefined ? {} : { ...image, command }),
      ...(directory === undefined ? {} : { directory }),
      ...(output === undefined ? {} : { output }),
    },
    static: spa ? { spa } : {},
  };
  const lines = (part: readonly string[]) => part.map((line) => `${line}\n`).join('');
  const isBuilt = command !== undefined || directory !== undefined || output !== undefined || spa;
  return {
    files: {
      ...(isBuilt ? { 'postern.yaml': stringify({ version: 1, services: { web } }) } : {}),
      ...(redirects.length === 0 ? {} : { _redirects: lines(redirects) }),
      ...(headers.length === 0 ? {} : { _headers: lines(headers) }),
    },
    untranslated: [
      ...(command === undefined || node !== undefined
        ? []
        : [{ where: 'build', why: `The image of the build is a guess: ${image.image}.` }]),
      ...untranslated,
    ],
  };
}
