import { type CallerOptions, openCaller } from '../http/call.ts';
import { documents } from './config-documents.ts';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { inputFrom } from './run-verb.ts';

type DiffOptions = CallerOptions & { readonly input?: string; readonly version?: number };

type Version = { readonly version: number } & Readonly<Record<string, unknown>>;

/** Fields in which the current document differs from a file or an earlier version. @throws Failure */
export async function configDiff(name: string, options: DiffOptions, io: Io): Promise<Result> {
  const { input, version } = options;
  if ((input === undefined) === (version === undefined))
    throw wrongUsage('Give one of --input and --version.');
  const { path, field } = documents.get(name) ?? { path: '', field: '' };
  const file = await inputFrom(options, io);
  const { call } = await openCaller(io, options);
  const current = await call<Version>('GET', path);
  const other = version === undefined ? file : (await earlier(path, version))[field];
  return { data: differences(current[field], other), columns: ['field', 'current', 'other'] };

  async function earlier(at: string, wanted: number): Promise<Version> {
    for (let page = 1; ; page += 1) {
      const found = await call<Version[]>('GET', `${at}/history?limit=100&page=${page}`);
      const one = found.find((each) => each.version === wanted);
      if (one !== undefined) return one;
      if (found.length < 100)
        throw new Failure('not_found', 3, `The document has no version ${wanted}.`, {
          hint: `Versions: postern config history ${name}`,
        });
    }
  }
}

type Difference = { readonly field: string; readonly current: unknown; readonly other: unknown };

/** Objects are compared field by field, everything else as a whole; null = the field is not there. */
export function differences(current: unknown, other: unknown, field = ''): Difference[] {
  if (isObject(current) && isObject(other)) {
    const names = [...new Set([...Object.keys(current), ...Object.keys(other)])];
    return names.flatMap((name) =>
      differences(current[name], other[name], field === '' ? name : `${field}.${name}`),
    );
  }
  if (JSON.stringify(current) === JSON.stringify(other)) return [];
  return [{ field, current: current ?? null, other: other ?? null }];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
