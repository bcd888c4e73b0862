import { Argument, type Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { addDeploy } from './deploy/command.ts';
import { addEnvironmentVerbs } from './environments/command.ts';
import { addConfigDiff, addDoctor, addKeyVerbs, addOpen, addPages, addValidate } from './verbs/commands.ts';
import { exitCodes, Failure, wrongUsage } from './core/failure.ts';
import { addImport } from './import/command.ts';
import type { Io } from './core/io.ts';
import { failureText, isColored } from './print/output.ts';
import { safeIo } from './print/safe-io.ts';
import { addCommonOptions, Ended, printing } from './print/printing.ts';
import { SafeCommand } from './print/safe-command.ts';
import { addScan } from './scan/command.ts';
import { addSignInVerbs } from './sign-in/command.ts';
import { completionScript, llmsText, type Shell, shells } from './print/tree.ts';
import { optionFlag, type Option as VerbOption, type Verb, type Verbs } from './core/verb.ts';
import generated from './verbs.json' with { type: 'json' };

/** The words, arguments and options of the command line. What a verb does is loaded when it runs. */
// The file is written by cli/generate.ts, whose result has this type.
const verbs = generated as Verbs;

/** Runs the verb that the arguments name; returns the exit code. */
export async function run(args: readonly string[], given: Io): Promise<number> {
  const io = safeIo(given);
  const isJson = args.includes('--json');
  // Taken out before, because to the parser it is the opposite of --input.
  const isSilent = args.includes('--no-input');
  const program = createProgram(isSilent ? { ...io, canAsk: false } : io, args[0] ?? '');
  try {
    await program.parseAsync(
      args.filter((word) => word !== '--no-input'),
      { from: 'user' },
    );
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    if (error instanceof Ended) return error.exitCode;
    const failure = toFailure(error);
    const text = failureText(failure, isJson, !isJson && isColored(io.errIsTerminal, io.env));
    if (isJson) await io.out(text);
    else io.err(text);
    return failure.exitCode;
  }
}

function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  // Without arguments commander prints the help to stderr and ends with this.
  if (error instanceof CommanderError) return wrongUsage('A command is missing.', 'Help: postern --help');
  const message = error instanceof Error ? error.message : String(error);
  return new Failure('internal', 1, `Unexpected: ${message}`);
}

/** What prints the whole tree. */
const wholeTree = ['completion', 'llms'];

/**
 * The tree; `io` is only used by a verb that runs. With `first`, the first word of the command line, other groups have no
 * verbs: the tree of every verb takes longer than most of them.
 */
export function createProgram(io: Io, first?: string): Command {
  const program = new SafeCommand('postern')
    .description('Postern: API keys people can trust, and sites and Environments that stay private.')
    .version(verbs.version, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .configureHelp({ helpWidth: 100, visibleCommands: ({ commands }) => [...commands] })
    .configureOutput({ writeOut: (text) => void io.out(text), writeErr: io.err })
    .helpCommand(false)
    .exitOverride()
    // Otherwise --version of `sites files` would print the version of the program.
    .enablePositionalOptions()
    .addHelpText('after', afterHelp);
  addDeploy(program, io);
  addSignInVerbs(program, io);
  const groups = new Map<string, Command>();
  const isWhole = first === undefined || wholeTree.includes(first);
  for (const verb of verbs.verbs) {
    const parent = groupOf(program, groups, verb.name);
    if (!isWhole && parent !== program && !verb.name.startsWith(`${first} `)) continue;
    if (verb.name === 'schema validate') addValidate(parent, verb, io);
    else addVerb(parent, verb, io);
  }
  addEnvironmentVerbs(program, groupOf(program, groups, 'env up'), io);
  addOpen(program, io);
  const keys = groupOf(program, groups, 'keys verify');
  addKeyVerbs(keys, verbs, io);
  addConfigDiff(groupOf(program, groups, 'config diff'), io);
  addPages(program, keys, io);
  addDoctor(program, io);
  addScan(program, io);
  addImport(program, io);
  if (isWhole || first === 'keys') addScan(keys, io);
  addApi(program, io);
  program
    .command('completion')
    .summary('Print a script that completes commands and options.')
    .description(
      'Print a script that completes commands and options. For bash: source <(postern completion bash)',
    )
    .addArgument(new Argument('<SHELL>', 'the shell').choices(shells))
    .action(async (shell: Shell) => await io.out(completionScript(program, shell)));
  program
    .command('llms')
    .description('Print every command on a line, for language models.')
    .action(async () => await io.out(llmsText(program)));
  return program;
}

/** The command that holds the verb: `config get` for `config get sites`. */
function groupOf(program: Command, groups: Map<string, Command>, name: string): Command {
  const words = name.split(' ').slice(0, -1);
  const path = words.join(' ');
  if (path === '') return program;
  const known = groups.get(path);
  if (known !== undefined) return known;
  const made = groupOf(program, groups, path)
    .command(words.at(-1) ?? '')
    .description(verbs.groups[path] ?? '')
    .usage('<command>');
  groups.set(path, made);
  return made;
}

function addVerb(parent: Command, verb: Verb, io: Io): void {
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
    const { runVerb } = await import('./verbs/run-verb.ts');
    const result = await runVerb(verb, command.args, command.opts(), io);
    const { write } = command.opts<{ write?: string }>();
    return writes && write !== undefined
      ? await (await import('./files/write-files.ts')).writeFiles(result, write)
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

function addApi(program: Command, io: Io): void {
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
    const { runApi } = await import('./verbs/run-verb.ts');
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

const afterHelp = `
Every flag has an opposite: --no-spa for --spa.
postern login signs in. Without it, POSTERN_URL names the server, and POSTERN_KEY or POSTERN_KEY_FILE gives the key.

Exit codes:
${exitCodes.map(([code, meaning]) => `  ${code}  ${meaning}`).join('\n')}`;
