import type { Command } from 'commander';
import type { Io } from '../core/io.ts';
import { type ExitCode, Failure } from '../core/failure.ts';
import { failureText, fieldsFrom, hintsOf, isColored, type Result, resultText } from './output.ts';

/** The options of every command that prints a result. */
export function addOutputOptions(command: Command): Command {
  return command
    .optionsGroup('Common options:')
    .option('--json', 'Print {ok, data, error} as JSON.')
    .option('--fields <NAMES>', 'Print only these fields of the result, separated by commas.')
    .option('--no-input', 'Never ask.')
    .option('--quiet', 'Print no progress and no hints.')
    .helpOption('-h, --help', 'Print this help.');
}

/** The options of every command that sends a request with a credential. */
export function addCommonOptions(command: Command): Command {
  return addOutputOptions(command)
    .option('--context <NAME>', 'Use the server and the credential of this context.')
    .option('--key-stdin', 'Read the key from stdin.');
}

/** Runs the verb and prints what it returns. `fields` are those that its result has. */
export function printing(
  io: Io,
  command: Command,
  fields: readonly string[] | undefined,
  verb: () => Promise<Result>,
): void {
  command.action(async () => {
    const { json = false, fields: asked, quiet = false } = command.opts<CommonOptions>();
    const form = {
      isJson: json,
      fields: fieldsFrom(asked, fields),
      columns: io.outTerminal?.columns ?? null,
      isColored: isColored(io.outTerminal !== null, io.env),
      now: io.now(),
    };
    const result = await verb();
    const isOne = result.stream === undefined && result.items === undefined;
    if (isOne) await io.out(resultText(result, form));
    for await (const item of result.items ?? []) {
      const isFailure = item instanceof Failure;
      const hasColor = isColored(io.errIsTerminal, io.env);
      const line = isFailure ? failureText(item, json, hasColor) : resultText(item, form);
      if (isFailure && !json) io.err(line);
      else await io.out(line);
      if (!isFailure && !quiet && !json) io.err(hintsOf(item));
    }
    for await (const chunk of result.stream ?? []) await io.out(chunk);
    if (!quiet && !json) io.err(hintsOf(result));
    if (result.failure !== undefined && !json)
      io.err(failureText(result.failure, false, isColored(io.errIsTerminal, io.env)));
    const exitCode = result.failure?.exitCode ?? result.exitCode;
    if (exitCode !== undefined) throw new Ended(exitCode);
  });
}

/** A verb that printed its result, whose exit code is not 0. */
export class Ended extends Error {
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode) {
    super();
    this.exitCode = exitCode;
  }
}

type CommonOptions = { readonly json?: true; readonly fields?: string; readonly quiet?: true };
