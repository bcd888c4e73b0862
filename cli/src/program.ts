import { Argument, type Command, CommanderError } from 'commander';
import { exitCodes, Failure, wrongUsage } from './core/failure.ts';
import type { Io } from './core/io.ts';
import type { Verbs } from './core/verb.ts';
import { addDeploy } from './deploy/command.ts';
import { addEnvironmentVerbs } from './environments/command.ts';
import { addImport } from './import/command.ts';
import { failureText, isColored } from './print/output.ts';
import { Ended } from './print/printing.ts';
import { SafeCommand } from './print/safe-command.ts';
import { safeIo } from './print/safe-io.ts';
import { completionScript, llmsText, type Shell, shells } from './print/tree.ts';
import { addScan } from './scan/command.ts';
import { addSignInVerbs } from './sign-in/command.ts';
import { addConfigDiff, addDoctor, addKeyVerbs, addOpen, addPages, addValidate } from './verbs/commands.ts';
import { addApi, addVerb } from './verbs/route-verbs.ts';
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
    .description(
      'The command line of Postern: API keys, private and public sites, and a URL for every branch.',
    )
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
  addApi(program, verbs, io);
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

const afterHelp = `
Every flag has an opposite: --no-spa for --spa.
postern login signs in. Without it, POSTERN_URL names the server, and POSTERN_KEY or POSTERN_KEY_FILE gives the key.
A pipeline needs no key: POSTERN_KEY_ID names a federated key, and the job has an ID token.

Exit codes:
${exitCodes.map(([code, meaning]) => `  ${code}  ${meaning}`).join('\n')}`;
