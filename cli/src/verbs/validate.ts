import { readFile } from 'node:fs/promises';
import { type CallerOptions, openCaller } from '../http/call.ts';
import { wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { type Problem, problemText } from '../core/problem.ts';

type Validation = { readonly valid: boolean; readonly problems: readonly Problem[] };

/** `postern schema validate`: every problem of a postern.yaml, as compilers print them. @throws Failure */
export async function validate(
  given: string | undefined,
  options: CallerOptions & { readonly content?: string },
  io: Io,
): Promise<Result> {
  if (given !== undefined && options.content !== undefined)
    throw wrongUsage('FILE and --content both give the text.', 'Give one of them.');
  if (given === '-' && options.keyStdin) throw wrongUsage('FILE - and --key-stdin both read stdin.');
  const file = given ?? 'postern.yaml';
  const content = options.content ?? (await textOf(file, io));
  const { call } = await openCaller(io, options);
  const value = { content };
  const data = await call<Validation>('POST', '/schema/validate', { kind: 'json', value });
  const shown = options.content === undefined && given !== '-' ? file : 'postern.yaml';
  const lines = data.valid ? [] : data.problems.map((problem) => problemText(problem, shown));
  return {
    data,
    text: lines.map((line) => `${line}\n`).join(''),
    ...(data.valid ? { hint: `${shown} has no problems.` } : { exitCode: 1 as const }),
  };
}

async function textOf(file: string, io: Io): Promise<string> {
  const text = file === '-' ? await io.readInput() : await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined)
    throw wrongUsage(`${file} cannot be read.`, 'Name it: postern schema validate FILE');
  return text;
}
