import { Argument, Command, CommanderError, type ErrorOptions, InvalidArgumentError } from 'commander';
import type { SecretSource } from '../config/generated-secrets.ts';
import { type GeneratedName, generatedNames, type Workload, workloads } from '../config/names.ts';
import type { Config } from '../config/read.ts';
import type { Anchor } from '../features/audit/verify.ts';
import { version } from '../platform/version.ts';

/**
 * The command line: every command, its help, and what it runs. A command loads its code and reads its settings when it
 * runs, so help is fast and a server does not load the commands. `npm run docs` writes the help to
 * docs/reference/commands.md.
 */
type Hooks = {
  /** Called when a command has read the settings. */
  readonly onSettings: (config: Config) => void;
  /** Called with the exit code when a command has ended. */
  readonly onExit: (code: number) => void;
};

export const exitCodes: readonly (readonly [code: number, meaning: string])[] = [
  [0, 'The command is done, or the server has stopped.'],
  [1, 'The command ran. The answer is no, or the command failed.'],
  [2, 'The command line is wrong. Nothing was changed.'],
];

/** Runs the command that the arguments name, or the server; returns the exit code. */
export async function runCommandLine(
  args: readonly string[],
  onSettings: Hooks['onSettings'],
): Promise<number> {
  let code = 0;
  const program = createCommandLine({
    onSettings,
    onExit(given) {
      code = given;
    },
  });
  try {
    await program.parseAsync(args.length === 0 ? ['all'] : args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Commander has printed the help, the version or the mistake.
    return error.exitCode === 0 ? 0 : 2;
  }
  return code;
}

export function createCommandLine({ onSettings, onExit }: Hooks): Command {
  async function settings(reader: Workload | 'migrate' = 'all', secretOf?: SecretSource): Promise<Config> {
    const { readConfig } = await import('../config/read.ts');
    const config = readConfig(undefined, reader, secretOf);
    onSettings(config);
    return config;
  }
  /** For commands that must not generate secrets: new secrets cannot decrypt existing or restored data. */
  async function settingsOfExistingData(): Promise<Config> {
    const { existingSecrets } = await import('../config/generated-secrets.ts');
    return await settings('all', existingSecrets);
  }
  /** Converts the work of a command to an action, which passes its exit code on. */
  const run =
    <Arguments extends unknown[]>(work: (...args: Arguments) => Promise<number>) =>
    async (...args: Arguments) =>
      onExit(await work(...args));
  const serve = (workload: Exclude<Workload, 'gateway'>) =>
    run(async () => {
      endOnSignals();
      const config = await settings(workload);
      return await (await import('./serve.ts')).serve(config, workload);
    });
  const commands = () => import('../operations/commands.ts');

  const program = new SafeCommand('npm start --')
    .description(
      'Postern: one server for API keys you can trust, private and public sites, and a URL for every branch.',
    )
    .version(version, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    // Without "help [command]", which works everywhere and says no more than --help.
    .configureHelp({ helpWidth: 80, visibleCommands: ({ commands }) => [...commands] })
    .enablePositionalOptions()
    .exitOverride()
    .addHelpText('after', afterHelp);

  program.commandsGroup('Server:');
  program
    .command('all')
    .summary('Run web, gateway and worker in one process. The default.')
    .description(
      'Run web, gateway and worker in one process, as npm start does without a command. The embedded database needs this: only one process can open it.',
    )
    .action(serve('all'));
  program
    .command('web')
    .description('Run the web app, the API and sign-in. Needs PostgreSQL and Redis.')
    .action(serve('web'));
  program
    .command('gateway')
    .description('Serve the content of sites. Needs PostgreSQL and Redis.')
    .action(
      run(async () => {
        endOnSignals();
        const config = await settings('gateway');
        return await (await import('./serve-gateway.ts')).serveGateway(config);
      }),
    );
  program
    .command('worker')
    .description('Run expiry, clean-up, the audit chain and notices. Needs PostgreSQL and Redis.')
    .action(serve('worker'));
  program
    .command('migrate')
    .summary('Migrate the database to the newest version.')
    .description(
      `Migrate the database to the newest version. A server does this at its start, if its database role may create tables. ${stopFirst}`,
    )
    .action(
      run(async () => {
        endOnSignals();
        return (await commands()).runMigrations(await settings('migrate'));
      }),
    );

  const group = (name: string, description: string) =>
    program.command(name).description(description).usage('<command>');
  program.commandsGroup('Data and access:');
  const admin = group('admin', 'Print a login link, reset a password or passkeys, rotate signing keys.');
  admin
    .command('login-link')
    .summary('Print a one-time link that creates the first administrator.')
    .description(
      'Print a one-time link that creates the first administrator. The link is valid for 15 minutes. The server may be running.',
    )
    .action(run(async () => (await commands()).printLoginLink(await settings())));
  admin
    .command('reset-password')
    .summary('Set a new password for an account, and print it.')
    .description(
      `Generate a new password for an account, print it, and sign the account out everywhere. ${stopFirst}`,
    )
    .argument('<EMAIL>', 'the e-mail address of the account', notEmpty)
    .action(
      run(async (email: string) => (await commands()).runResetPassword(await settings(), email.trim())),
    );
  admin
    .command('reset-passkeys')
    .summary('Remove the passkeys of an account.')
    .description(
      `Remove all passkeys and recovery codes of an account, and sign the account out everywhere. The password stays. ${stopFirst}`,
    )
    .argument('<EMAIL>', 'the e-mail address of the account', notEmpty)
    .action(
      run(async (email: string) => (await commands()).runResetPasskeys(await settings(), email.trim())),
    );
  admin
    .command('rotate-signing-keys')
    .summary('Generate a new signing key for the built-in identity provider.')
    .description(
      `Generate a new signing key for the built-in identity provider. The server signs with it from its next start. The previous key still verifies. ${stopFirst}`,
    )
    .action(run(async () => (await commands()).runRotateSigningKeys(await settings())));

  const secrets = group('secrets', 'Rotate and retire the generated secrets in DATA_DIR.');
  const secretName = () => new Argument('<NAME>', 'the secret').choices(generatedNames);
  secrets
    .command('rotate')
    .summary('Add a new value to a generated secret.')
    .description(
      'Add a new value to a generated secret. The server uses it from its next start, and still accepts the older values. The server may be running.',
    )
    .addArgument(secretName())
    .action(
      run(async (name: GeneratedName) => {
        const { runRotate } = await import('../operations/secrets.ts');
        return runRotate(await settingsOfExistingData(), name);
      }),
    );
  secrets
    .command('retire')
    .summary('Remove the older values of a generated secret.')
    .description(
      `Remove the older values of a generated secret. Refused while data remains that only an older value can decrypt. ${stopFirst}`,
    )
    .addArgument(secretName())
    .action(
      run(async (name: GeneratedName) => {
        const { runRetire } = await import('../operations/secrets.ts');
        return await runRetire(await settingsOfExistingData(), name);
      }),
    );

  group('keys', 'Import the API keys of an older deployment.')
    .command('import')
    .summary('Import the key records of an older deployment.')
    .description(
      `Import the key records of an older deployment, all of them or none. Records that exist already are skipped. ${stopFirst}`,
    )
    .argument('<FILE>', 'one JSON object a line: docs/how-to/import-older-keys.md', notEmpty)
    .action(run(async (file: string) => (await commands()).runImport(await settings(), file)));
  group('sites', 'Check a file before you publish it as a site.')
    .command('check')
    .summary('Check a file by the rules of an upload.')
    .description(
      'Check a file by the rules of an upload. Prints every problem. Needs neither a server nor a database.',
    )
    .argument('<FILE>', 'a .zip, .tar.gz, .tgz or .html file', notEmpty)
    .action(run(async (file: string) => (await commands()).runSiteCheck(await settings(), file)));
  group('audit', 'Verify the audit log.')
    .command('verify')
    .summary('Verify the audit chain.')
    .description(`Verify the audit chain: no event was changed, inserted or removed. ${stopFirst}`)
    .argument(
      '[HEAD]',
      'the head of the chain that an earlier run printed, SEQ:HASH: also proves that no event was removed from the end since',
      anchorOf,
    )
    .action(run(async (anchor?: Anchor) => (await commands()).runVerify(await settings(), anchor)));
  program
    .command('backup')
    .summary('Write the embedded database and the files of sites to one file.')
    .description(
      'Write the embedded database and the files of sites to one new file. Stop the server first. With DATABASE_URL, use the tools of PostgreSQL and of the object store.',
    )
    .argument('<FILE>', 'the file to create', notEmpty)
    .option('--with-secrets', 'Include the generated secrets, encrypted with BACKUP_PASSPHRASE.', false)
    .action(
      run(async (file: string, options: { withSecrets: boolean }) => {
        const { runBackup } = await import('../operations/backup/backup.ts');
        return await runBackup(await settingsOfExistingData(), file, options);
      }),
    );
  program
    .command('restore')
    .summary('Restore a backup into an empty DATA_DIR.')
    .description(
      'Restore a backup into an empty DATA_DIR. Checks the whole backup first. If the backup holds no secrets, restore DATA_DIR/secrets before, or set ENCRYPTION_KEY.',
    )
    .argument('<FILE>', 'the file that backup wrote', notEmpty)
    .action(
      run(async (file: string) => {
        const { runRestore } = await import('../operations/backup/backup.ts');
        return await runRestore(await settingsOfExistingData(), file);
      }),
    );

  program.commandsGroup('In pods of Environments:');
  const pod = group('pod', 'Fetch and send the files of a pod. The engine of Environments runs it.');
  const ofPod = 'Reads TRANSFER_URL and TRANSFER_TICKET, and no other setting.';
  pod
    .command('fetch')
    .summary('Fetch the files of a ticket into a folder.')
    .description(`Fetch the files of a ticket into a folder, in place of those that are there. ${ofPod}`)
    .argument('<FOLDER>', 'the folder, which is emptied first', notEmpty)
    .action(
      run(async (folder: string) => {
        endOnSignals();
        const { inThisPod, runPodFetch } = await import('../operations/pod/pod.ts');
        return await runPodFetch(inThisPod(), folder);
      }),
    );
  pod
    .command('send')
    .summary('Send the output of a build.')
    .description(`Send the output of a build, by the rules for outputs. ${ofPod}`)
    .argument('<FOLDER>', 'the folder of the repository', notEmpty)
    .option('--directory <PATH>', 'where the command of the build ran, from FOLDER', '.')
    .option('--output <PATH>', 'where its output is, from there', '.')
    .action(
      run(async (folder: string, build: { directory: string; output: string }) => {
        endOnSignals();
        const { inThisPod, runPodSend } = await import('../operations/pod/pod.ts');
        return await runPodSend(inThisPod(), folder, build);
      }),
    );

  program.commandsGroup('Checks:');
  program
    .command('doctor')
    .summary('Check everything that a server depends on, and print what to fix.')
    .description(
      'Check the settings and everything that a server depends on, and print what to fix. Changes nothing. The server may be running; some checks need it stopped, others need it running.',
    )
    .addArgument(
      new Argument('[WORKLOAD]', 'the workload whose settings to check').choices(workloads).default('all'),
    )
    .option('--json', 'Print the result as JSON.', false)
    .action(
      // Reads no settings here: it reports everything that is wrong with them.
      run(async (workload: Workload, { json }: { json: boolean }) => {
        const { runDoctor } = await import('../operations/doctor/doctor.ts');
        return await runDoctor({ workload, isJson: json });
      }),
    );
  program
    .command('drill')
    .summary('Break a separate instance, part by part, and check what clients see.')
    .description(
      'Start a separate instance in a temporary folder, break it part by part, and check what clients see. Reads no settings and does not touch your data.',
    )
    .option('--json', 'Print the result as JSON.', false)
    .action(
      run(async ({ json }: { json: boolean }) => {
        const { runDrill } = await import('../operations/drill/drill.ts');
        return await runDrill({ isJson: json });
      }),
    );
  return program;
}

const stopFirst = 'With the embedded database, stop the server first.';

const afterHelp = `
Exit codes:
${exitCodes.map(([code, meaning]) => `  ${code}  ${meaning}`).join('\n')}

Help of a command: npm start -- keys import --help
Settings are environment variables: docs/reference/config.md`;

/** Prints mistakes of the command line without the argument itself, which may be a password or another secret. */
class SafeCommand extends Command {
  override createCommand(name?: string): SafeCommand {
    return new SafeCommand(name);
  }

  override error(message: string, { code = '' }: ErrorOptions = {}): never {
    const help = `Help: ${pathOf(this)} --help`;
    super.error(`postern: ${mistakeOf(this, code, message)}\n${help}`, { code, exitCode: 2 });
  }
}

const unreadable = 'the command line cannot be read.';

function mistakeOf(command: Command, code: string, message: string): string {
  // Commander puts a suggestion of known words last.
  const [, suggestion] = /\n\((Did you mean [^\n]+\?)\)$/.exec(message) ?? [];
  const hint = suggestion === undefined ? '' : ` ${suggestion}`;
  switch (code) {
    case 'commander.unknownCommand':
      return `there is no such command.${hint}`;
    case 'commander.unknownOption':
      return `there is no such option.${hint}`;
    case 'commander.excessArguments':
      return `too many arguments: the command takes ${command.registeredArguments.length || 'none'}.`;
    case 'commander.missingArgument':
      return message.replace(/^error: missing required argument '(\w+)'$/, '$1 is missing.');
    case 'commander.invalidArgument': {
      // Commander puts the argument first, and the message of its parser last.
      const [, name, reason] = /^[^]* is invalid for argument '(\w+)'\. ([^]*)$/.exec(message) ?? [];
      return name === undefined ? unreadable : `${name} cannot be used. ${reason}`;
    }
    default:
      return unreadable;
  }
}

export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** An unset shell variable in quotes is an empty argument. */
function notEmpty(value: string): string {
  if (value.trim() === '') throw new InvalidArgumentError('It is empty.');
  return value;
}

function anchorOf(head: string): Anchor {
  const [, seq, hash] = /^(\d{1,15})[: ]([0-9a-f]{64})$/.exec(head) ?? [];
  if (seq === undefined || hash === undefined)
    throw new InvalidArgumentError('Write it as an earlier run printed it: 123:<64 hexadecimal digits>.');
  return { seq: Number(seq), hash };
}

/**
 * Until the process is ready (run/lifecycle.ts), a signal ends it at once: no client has been promised anything yet.
 * Without a handler, the first process of a container would ignore the signal (pid_namespaces(7)), begin to serve, and be
 * killed later.
 */
function endOnSignals(): void {
  process.once('SIGTERM', () => process.exit(143));
  process.once('SIGINT', () => process.exit(130));
}
