// Runs a program of this project with the project's own Node version, after it installs and builds what is missing:
//   node scripts/run.mjs src/main.ts [arguments…]
// Plain JavaScript for old Node versions: this file and ui-build.mjs run before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programOptions } from './program-options.mjs';
import { needsApiTypes, needsCliBuild, needsUiBuild } from './ui-build.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lock = join(root, 'package-lock.json');
const installed = join(root, 'node_modules', '.package-lock.json');

function isInstalled() {
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs;
}

function install() {
  console.error('postern: installing the packages …');
  const npm = process.env.npm_execpath;
  // Installs the versions of the lock file and does not change it. `npm ci` first deletes node_modules, which may contain
  // the Node that runs this, so it is used only in a clean clone.
  const install = existsSync(installed) ? ['install', '--no-save'] : ['ci'];
  const command = npm === undefined ? ['npm', ...install] : [process.execPath, npm, ...install];
  const done = spawnSync(command[0], [...command.slice(1), '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: npm === undefined && process.platform === 'win32',
  });
  if (done.status !== 0) {
    console.error(
      `postern: npm ${install[0]} failed. Read its message above, fix the cause, and run the command again.`,
    );
    process.exit(done.status ?? 1);
  }
}

function findNode() {
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath;
  const own = join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (existsSync(own)) return own;
  console.error(
    `postern: needs Node 24 or newer, and there is no packaged Node for ${process.platform}-${process.arch}. ` +
      `Install Node 24 (this is ${process.version}) and run the command again.`,
  );
  process.exit(1);
}

function build(node, what, script) {
  console.error(`postern: building the ${what} …`);
  const done = spawnSync(node, [script], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (done.status === 0) return;
  console.error(
    `postern: the ${what} could not be built. Read the message above, fix it, and run the command again.`,
  );
  process.exit(done.status ?? 1);
}

/**
 * The process ids whose end means that npm is gone: our parent, and the parent of the shell in which npm runs scripts.
 * Not the process that started npm: a user may close the terminal and keep the server running (nohup, &).
 */
function npmAndItsShell() {
  const parent = process.ppid;
  try {
    const isShell = readFileSync(`/proc/${parent}/cmdline`, 'utf8').split('\0')[1] === '-c';
    if (!isShell) return `${parent}`;
    const stat = readFileSync(`/proc/${parent}/stat`, 'utf8');
    return `${parent} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]}`;
  } catch {
    // There is no /proc here. When npm is killed with SIGKILL, this process notices only when npm's shell ends too.
    return `${parent}`;
  }
}

/** npm sends SIGTERM to its shell, which ends without passing it on. Without this the program would keep running. */
function stopWithNpm(program) {
  if (process.env.npm_lifecycle_event === undefined || process.platform === 'win32') return;
  const since = npmAndItsShell();
  const watch = setInterval(() => {
    if (npmAndItsShell() === since) return;
    clearInterval(watch);
    program.kill('SIGTERM');
  }, 500);
  watch.unref();
}

if (!isInstalled()) install();
const node = findNode();
const [program, command] = process.argv.slice(2);
if (needsApiTypes(program)) build(node, 'types of the API', 'ui/api-types.ts');
if (needsUiBuild(root, program, command)) build(node, 'web app', 'ui/build.ts');
if (needsCliBuild(root, program, command)) build(node, 'command line', 'cli/build.ts');
const options = program === 'src/main.ts' ? programOptions : [];
const child = spawn(node, [...options, ...process.argv.slice(2)], { cwd: root, stdio: 'inherit' });
// Ctrl-C reaches the child directly, so this process only waits for it. SIGTERM reaches this process only, so it is
// passed on.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => child.kill('SIGTERM'));
stopWithNpm(child);
child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
