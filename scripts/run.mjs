// Runs a program of this project on the Node it brings along, installing and building first what is missing.
//   node scripts/run.mjs src/main.ts [arguments…]
// Plain JavaScript for old Node versions: this file and ui-build.mjs run before anything is installed.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { needsUiBuild } from './ui-build.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lock = join(root, 'package-lock.json');
const installed = join(root, 'node_modules', '.package-lock.json');

function isInstalled() {
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs;
}

function install() {
  console.error('postern: installing what is missing (npm install) …');
  const npm = process.env.npm_execpath;
  // The versions of the lock file, and nothing written back. Not `npm ci`: it refuses the whole lock file when a
  // registry lacks a package that only another platform would use.
  const install = ['install', '--no-save'];
  const command = npm === undefined ? ['npm', ...install] : [process.execPath, npm, ...install];
  const done = spawnSync(command[0], [...command.slice(1), '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: npm === undefined && process.platform === 'win32',
  });
  if (done.status !== 0) {
    console.error('postern: npm install failed. Read its message above, mend it, and run the command again.');
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

function buildUi(node) {
  console.error('postern: building the web app …');
  const done = spawnSync(node, ['ui/build.ts'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (done.status === 0) return;
  console.error(
    'postern: the web app could not be built. Read the message above, mend it, and run the command again.',
  );
  process.exit(done.status ?? 1);
}

/**
 * Whoever would have to die for npm to be gone, as process ids: our parent, and the parent of the shell that npm runs
 * scripts in. Not the one that started npm: a terminal may be closed and the server be meant to stay (nohup, &).
 */
function npmAndItsShell() {
  const parent = process.ppid;
  try {
    const isShell = readFileSync(`/proc/${parent}/cmdline`, 'utf8').split('\0')[1] === '-c';
    if (!isShell) return `${parent}`;
    const stat = readFileSync(`/proc/${parent}/stat`, 'utf8');
    return `${parent} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]}`;
  } catch {
    // No /proc here. Of an npm that is killed outright we hear when its shell ends, too.
    return `${parent}`;
  }
}

/** npm passes SIGTERM to its shell, which dies of it and tells nobody: without this the program would stay behind. */
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
if (needsUiBuild(root, process.argv[2])) buildUi(node);
const child = spawn(node, process.argv.slice(2), { cwd: root, stdio: 'inherit' });
// The child hears Ctrl-C by itself; we only wait for it. SIGTERM goes to us alone, so it is passed on.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => child.kill('SIGTERM'));
stopWithNpm(child);
child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)));
