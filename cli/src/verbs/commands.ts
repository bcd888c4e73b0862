import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { documents } from './config-documents.ts';
import type { Io } from '../core/io.ts';
import { pages } from './page-names.ts';
import { addCommonOptions, addOutputOptions, printing } from '../print/printing.ts';
import type { Verb, Verbs } from '../core/verb.ts';

/** `keys verify`, `keys can` and `keys open`. `whoami` is the generated verb of the same route. */
export function addKeyVerbs(keys: Command, { verbs }: Verbs, io: Io): void {
  const { options = [], fields = [] } = verbs.find(({ name }) => name === 'whoami') ?? {};
  const verify = keys
    .command('verify')
    .summary('Check a key before you use it.')
    .description(
      'Check a key before you use it: whose it is, its scopes and its end. It counts as a check, not as a use of the key. Ends with 4 when the key is not valid.',
    );
  addCommonOptions(verify);
  printing(
    io,
    verify,
    fields.filter((field) => field !== 'decision'),
    async () => (await import('./keys.ts')).verifyKey(verify.opts(), io),
  );

  const can = keys
    .command('can')
    .summary('Ask whether a key may use a scope.')
    .description(
      'Ask whether a key may use a scope, and print yes or no. The server decides with the rules that it enforces. Ends with 0 for yes, with 1 for no, and with 4 when the key is not valid.',
    )
    .addArgument(
      new Argument('<SCOPE>', 'the scope').choices(options.find(({ name }) => name === 'can')?.choices ?? []),
    )
    .option('--repository <OWNER/NAME>', 'A repository to try the scope on');
  addCommonOptions(can);
  printing(io, can, ['allowed', 'rules'], async () =>
    (await import('./keys.ts')).mayUse(can.args[0] ?? '', can.opts(), io),
  );

  const open = keys
    .command('open')
    .summary('Decrypt a key that was sealed to a public key, and print it.')
    .description(
      `Decrypt a key that the server sealed to a public key, and print it. Sends nothing. Ends with 1 when the private key does not open it.

FILE holds sealed.value of the response that created the key: a compact JWE, an armored age file or a sealed box in base64. The file of --private-key holds the private JWK, the identity of age or the X25519 private key in base64.`,
    )
    .argument('<FILE>', 'the sealed key; - is stdin')
    .requiredOption('--private-key <FILE>', 'The private key; - reads it from stdin.');
  addOutputOptions(open);
  printing(io, open, ['key'], async () =>
    (await import('../sealed/open-sealed-key.ts')).openSealedKey(
      open.args[0] ?? '',
      open.opts().privateKey,
      io,
    ),
  );
}

export function addConfigDiff(config: Command, io: Io): void {
  const group = config
    .command('diff')
    .description('Compare a configuration document with a file or an earlier version.')
    .usage('<command>');
  for (const name of documents.keys()) {
    const diff = group
      .command(name)
      .summary('Print the fields that differ from a file or an earlier version.')
      .description(
        'Print the fields in which the current document differs from a file or an earlier version.\n\nNeeds an access token with the scope admin.',
      )
      .option('--input <FILE>', 'A JSON document; - reads it from stdin.')
      .addOption(
        new Option('--version <NUMBER>', `A version, as config history ${name} prints it`).argParser(
          (text: string) => {
            if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Write a number.');
            return Number(text);
          },
        ),
      );
    addCommonOptions(diff);
    printing(io, diff, ['field', 'current', 'other'], async () =>
      (await import('./config-diff.ts')).configDiff(name, diff.opts(), io),
    );
  }
}

/** Routes that need a browser session have no verb; these open their pages. */
export function addPages(program: Command, keys: Command, io: Io): void {
  for (const [name, [path, meaning]] of pages) {
    const page =
      name === 'keys' ? keys.usage('[options] [command]').enablePositionalOptions() : program.command(name);
    page
      .summary(`Open the page in the browser, and print its address. ${meaning}.`)
      .description(
        `${meaning}. This needs a browser session: open the page in the browser, and print its address. Without a terminal, only print it.`,
      )
      .option('--no-browser', 'Only print the address.');
    addOutputOptions(page).option('--context <NAME>', 'Use the server of this context.');
    printing(io, page, ['url'], async () => (await import('./pages.ts')).openPage(path, page.opts(), io));
  }
}

export function addDoctor(program: Command, io: Io): void {
  const doctor = program
    .command('doctor')
    .summary('Check what the command line needs, and print what to fix.')
    .description(
      'Check what the command line needs, and print what to fix: the file of the credentials, the server and its version, the clock, and the sign-in. Changes nothing. Ends with 1 when a check failed.',
    );
  addCommonOptions(doctor);
  printing(io, doctor, ['check', 'state', 'message', 'fix'], async () =>
    (await import('./doctor.ts')).doctor(doctor.opts(), io),
  );
}

export function addOpen(program: Command, io: Io): void {
  const open = program
    .command('open')
    .summary('Open an Environment or a site in the browser, and print its address.')
    .description(
      'Open an Environment or a site in the browser, and print its address. Without a terminal, only print it.\n\nNeeds the scope env:read or sites:read.',
    )
    .argument('<NAME>', 'the name or the id of an Environment or a site')
    .option('--no-browser', 'Only print the address.');
  addCommonOptions(open);
  printing(io, open, ['url'], async () =>
    (await import('./open.ts')).open(open.args[0] ?? '', open.opts(), io),
  );
}

export function addValidate(schema: Command, { summary, description, fields }: Verb, io: Io): void {
  const command = schema
    .command('validate')
    .summary(summary)
    .description(
      `${summary}. ${description ?? ''} Prints a line \`file:line:column message\` for each problem, and ends with 1 when there is one.\n\nNeeds the scope repos:read.`,
    )
    .argument('[FILE]', 'the file; - is stdin. Default: postern.yaml')
    .option('--content <TEXT>', 'The text, instead of a file');
  addCommonOptions(command);
  printing(io, command, fields, async () =>
    (await import('./validate.ts')).validate(command.args[0], command.opts(), io),
  );
}
