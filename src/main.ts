import { enableCompileCache } from 'node:module';
import { join } from 'node:path';
import { ConfigError } from './config/config-error.ts';
import { existingSecrets } from './config/generated-secrets.ts';
import { type Config, readConfig } from './config/read.ts';
import { type Workload, workloads } from './config/names.ts';
import { keepTickShapes } from './platform/tick-shapes.ts';
import { explainStart, isInUse } from './composition/start-errors.ts';

/** The entry point: parses the arguments, runs the command or the server, and explains errors in words. */
const usage = `usage: npm start                                        the server: web, gateway and worker in one process
       npm start -- web | gateway | worker              one of them on its own, on PostgreSQL and Redis
       npm start -- migrate                             bring the database to the newest step
       npm start -- admin login-link                    print a one-time link that creates the first administrator
       npm start -- admin reset-password EMAIL          print a new password for an account, and sign it out everywhere
       npm start -- admin rotate-signing-keys           a new key for the built-in provider; the one before still verifies
       npm start -- secrets rotate | retire NAME        put a new value in front of a generated secret; take the older out
       npm start -- keys import FILE                    take key records of an older deployment
       npm start -- sites check FILE                    judge a .zip, .tar.gz or .html as an upload would be
       npm start -- audit verify [SEQ:HASH]             walk the audit chain; with a head that an earlier run printed,
                                                        prove that nothing was cut off since
       npm start -- doctor [web|gateway|worker] [--json] look at everything a server stands on, and say what to fix
       npm start -- drill [--json]                      break an instance of its own, part by part, and hold every rule
       npm start -- backup FILE [--with-secrets]        write the embedded database and the files of sites into one file
       npm start -- restore FILE                        restore them into an empty DATA_DIR, checked first
       npm start -- --version                           print the version
On the embedded database, all but login-link, secrets rotate, doctor and drill need the server stopped. Settings: docs/reference/config.md`;

// Compiled code is cached next to the packages, in a folder that is trusted like the code itself. The cache must be
// enabled before most of the program is loaded, so everything below is imported where it is needed. If the folder cannot
// be written, Node runs without the cache.
enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/postern'));

keepTickShapes();

type Work = (config: Config) => Promise<number>;

/** Parses the arguments; returns an error message when they are wrong. */
function workOf(args: readonly string[]): Work | string {
  const command = args.slice(0, 2).join(' ');
  const [first = '', , value = '', ...more] = args;
  // The argument is not repeated: it may be a password.
  if (more.length > 0) return `${command} was given too much`;
  const commands = () => import('./operations/commands.ts');
  switch (command) {
    case '':
    case 'all':
    case 'web':
    case 'worker':
      return async (config) =>
        (await import('./run/serve.ts')).serve(config, command === '' ? 'all' : command);
    case 'gateway':
      return async (config) => (await import('./run/serve-gateway.ts')).serveGateway(config);
    case 'migrate':
      return async (config) => (await commands()).runMigrations(config);
    case 'admin login-link':
      return value === ''
        ? async (config) => (await commands()).printLoginLink(config)
        : `${command} was given too much`;
    case 'admin reset-password':
      return value === ''
        ? 'EMAIL is missing'
        : async (config) => (await commands()).runResetPassword(config, value.trim());
    case 'admin rotate-signing-keys':
      return value === ''
        ? async (config) => (await commands()).runRotateSigningKeys(config)
        : `${command} was given too much`;
    case 'keys import':
      return value === '' ? 'FILE is missing' : async (config) => (await commands()).runImport(config, value);
    case 'sites check':
      return value === ''
        ? 'FILE is missing'
        : async (config) => (await commands()).runSiteCheck(config, value);
    case 'audit verify':
      return async (config) => (await commands()).runVerify(config, value === '' ? undefined : value);
    default:
      if (first === 'migrate' || isWorkload(first)) return `${first} was given too much`;
      return `unknown command ${/^(?:admin|keys|sites|audit)$/.test(first) ? command : first}`;
  }
}

async function changeSecret(options: readonly string[]): Promise<number> {
  const [verb = '', name = '', ...more] = options;
  const { isGeneratedName, runRetire, runRotate } = await import('./operations/secrets.ts');
  if (!/^(?:rotate|retire)$/.test(verb) || !isGeneratedName(name) || more.length > 0) {
    console.error(`postern: secrets takes rotate or retire, and the name of a generated secret\n\n${usage}`);
    return 2;
  }
  // Generates no secrets: a mistyped folder has nothing to rotate.
  config = readConfig(undefined, 'all', existingSecrets);
  return verb === 'rotate' ? runRotate(config, name) : await runRetire(config, name);
}

async function copy(command: 'backup' | 'restore', options: readonly string[]): Promise<number> {
  const withSecrets = command === 'backup' && options.includes('--with-secrets');
  const [file, ...more] = options.filter((option) => !(withSecrets && option === '--with-secrets'));
  if (file === undefined || more.length > 0 || file.startsWith('--')) {
    console.error(`postern: ${command} takes a FILE\n\n${usage}`);
    return 2;
  }
  const { runBackup, runRestore } = await import('./operations/backup/backup.ts');
  // These commands generate no secrets either: new ones could not decrypt existing or restored data.
  config = readConfig(undefined, 'all', existingSecrets);
  return command === 'backup'
    ? await runBackup(config, file, { withSecrets })
    : await runRestore(config, file);
}

/** Runs before the settings are read, because it reports everything that is wrong with them. */
async function examine(options: readonly string[]): Promise<number> {
  const [word = 'all', ...more] = options.filter((option) => option !== '--json');
  if (!isWorkload(word) || more.length > 0) {
    console.error(`postern: doctor takes a workload and --json\n\n${usage}`);
    return 2;
  }
  const { runDoctor } = await import('./operations/doctor/doctor.ts');
  return await runDoctor({ workload: word, isJson: options.includes('--json') });
}

/** Reads no settings: it does not touch an installation. */
async function rehearse(options: readonly string[]): Promise<number> {
  if (options.some((option) => option !== '--json')) {
    console.error(`postern: drill takes --json and nothing else\n\n${usage}`);
    return 2;
  }
  const { runDrill } = await import('./operations/drill/drill.ts');
  return await runDrill({ isJson: options.includes('--json') });
}

const isWorkload = (word: string): word is Workload => workloads.some((one) => one === word);

let config: Config | undefined;

async function main(args: readonly string[]): Promise<number> {
  if (/^(?:help|--help|-h)$/.test(args.join(' '))) {
    console.log(usage);
    return 0;
  }
  if (/^(?:version|--version)$/.test(args.join(' '))) {
    console.log((await import('./platform/version.ts')).version);
    return 0;
  }
  if (args[0] === 'doctor') return await examine(args.slice(1));
  if (args[0] === 'drill') return await rehearse(args.slice(1));
  if (args[0] === 'secrets') return await changeSecret(args.slice(1));
  if (args[0] === 'backup' || args[0] === 'restore') return await copy(args[0], args.slice(1));
  const work = workOf(args);
  if (typeof work === 'string') {
    console.error(`postern: ${work}\n\n${usage}`);
    return 2;
  }
  const [word = ''] = args;
  if (word === 'migrate' || word === '' || isWorkload(word)) endOnSignals();
  config = readConfig(undefined, isWorkload(word) || word === 'migrate' ? word : 'all');
  return await work(config);
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

/** Reports an operator's mistake in words, and any other error with its stack. */
function tell(error: unknown, isCommand: boolean): void {
  const mistake = explainStart(
    error,
    config === undefined
      ? null
      : { PORT: config.port, GATEWAY_PORT: config.gatewayPort, METRICS_PORT: config.metricsPort },
  );
  if (error instanceof ConfigError) {
    console.error(`postern cannot start; ${error.mistakes.length} setting(s) need fixing:\n${error.message}`);
  } else if (mistake !== undefined) {
    console.error(
      `postern cannot ${isCommand ? 'do this' : 'start'}:\n${new ConfigError([mistake]).message}`,
    );
  } else if (isInUse(error)) {
    console.error(`postern: ${error.message}`);
    if (isCommand) console.error('This command needs the database for itself: stop the server first.');
  } else {
    console.error('postern:', error);
  }
}

const args = process.argv.slice(2);
main(args).then(
  (code) => process.exit(code),
  (error: unknown) => {
    tell(error, args.length > 0 && !isWorkload(args[0] ?? ''));
    process.exit(1);
  },
);
