import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Io } from '../core/io.ts';
import { optionFlag, type Option as VerbOption, type Verb, type Verbs } from '../core/verb.ts';
import { addCommonOptions, printing } from '../print/printing.ts';

/** A verb that sends the one request of its route. */
export function addVerb(parent: Command, verb: Verb, io: Io): void {
  const command = parent
    .command(verb.name.split(' ').at(-1) ?? '')
    .summary(verb.summary)
    .description(
      [`${verb.summary}.`, verb.description, secretsIn(verb), scopeIn(verb)].filter(Boolean).join('\n\n'),
    );
  for (const { name, meaning } of verb.arguments) command.argument(`<${name.toUpperCase()}>`, meaning);
  for (const option of verb.options) addOption(command, option);
  if (verb.ifMatch !== undefined)
    command.option(
      '--if-match <ETAG>',
      'Change it only while it has this ETag. Verbs that read print it with --json.',
    );
  if (verb.body !== undefined)
    command.option(
      '--input <FILE>',
      'The JSON body of the request; - reads it from stdin. Options replace its fields.',
    );
  if (verb.file !== undefined)
    command.option('--file <FILE>', 'A .zip, .tar.gz, .tgz or .html file to publish.');
  if (verb.follows)
    command.option(
      '-f, --follow',
      'Print the lines as they are written, until the log ends. After a lost connection it continues. With --json, each line is an envelope, and its cursor continues after it.',
    );
  if (verb.pagination !== undefined) command.option('--paginate', 'Print every page.');
  const hasDryRun = verb.options.some(({ name }) => name === 'dryRun');
  if (verb.method !== 'GET' && !hasDryRun)
    command.option('--dry-run', 'Print the request, and send nothing.');
  if (verb.asks) command.option('--yes', 'Do not ask.');
  const writes = verb.name === 'agents export';
  if (writes)
    command.option(
      '--write <DIR>',
      'Write the files into this folder. Refuses if one of them exists, and writes none.',
    );
  addCommonOptions(command);
  printing(io, command, verb.fields, async () => {
    const { runVerb } = await import('./run-verb.ts');
    const result = await runVerb(verb, command.args, command.opts(), io);
    const { write } = command.opts<{ write?: string }>();
    return writes && write !== undefined
      ? await (await import('../files/write-files.ts')).writeFiles(result, write)
      : result;
  });
}

function secretsIn({ inputOnly = [] }: Verb): string | undefined {
  if (inputOnly.length === 0) return undefined;
  return `Give ${inputOnly.join(' and ')} in the JSON of --input: other users of the machine can read an argument.`;
}

function scopeIn({ scope, callers }: Verb): string | undefined {
  if (callers === 'tokens') return 'Needs an access token with the scope admin.';
  return scope === undefined ? undefined : `Needs the scope ${scope}.`;
}

function addOption(command: Command, { name, type, choices, isRequired, meaning }: VerbOption): void {
  const flag = optionFlag(name);
  const text = `${meaning}${isRequired ? `${meaning === '' ? '' : '. '}Required` : ''}`;
  switch (type) {
    case 'flag':
      command.option(flag, text);
      // A change can also switch something off.
      command.addOption(new Option(flag.replace('--', '--no-')).hideHelp());
      return;
    case 'text': {
      const option = new Option(`${flag} <${flag.slice(2).toUpperCase()}>`, text);
      command.addOption(choices === undefined ? option : option.choices(choices));
      return;
    }
    case 'number':
      command.addOption(new Option(`${flag} <NUMBER>`, text).argParser(numberOf));
      return;
    case 'list':
      command.addOption(
        new Option(
          `${flag} <VALUE>`,
          `${text}${text === '' ? '' : '. '}Repeat it for more values; an empty text gives none`,
        ).argParser((value: string, earlier: readonly string[] | undefined) => [
          ...(earlier ?? []),
          ...(value === '' ? [] : [value]),
        ]),
      );
      return;
    case 'json':
      command.addOption(new Option(`${flag} <JSON>`, text).argParser(jsonOf));
  }
}

/** `api`: any route, without a verb. */
export function addApi(program: Command, verbs: Verbs, io: Io): void {
  const command = program
    .command('api')
    .summary('Send any request of the API that a key or an access token may send.')
    .description(
      'Send any request of the API that a key or an access token may send. Routes that need a browser session are refused, and nothing is sent.',
    )
    .argument('<METHOD>', 'GET, POST, PUT, PATCH or DELETE')
    .argument('<PATH>', 'below /api/v2, such as /sites?mine=true')
    .option('--input <FILE>', 'The JSON body of the request; - reads it from stdin.')
    .option('--if-match <ETAG>', 'Change it only while it has this ETag.')
    .option('--paginate', 'Print every page.')
    .option('--dry-run', 'Print the request, and send nothing.');
  addCommonOptions(command);
  printing(io, command, undefined, async () => {
    const { runApi } = await import('./run-verb.ts');
    return await runApi(verbs, command.args, command.opts(), io);
  });
}

function numberOf(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new InvalidArgumentError('Write a number.');
  return value;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('Write it as JSON.');
  }
}
