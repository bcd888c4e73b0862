import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from './local-servers.ts';

/**
 * An S3 server for tests: Versity's gateway over a temporary folder, on loopback. Go compiles it once, into the cache
 * next to the packages. `node scripts/object-store.ts` installs it.
 */
const version = 'v1.8.0';
const folder = join(import.meta.dirname, '../node_modules/.cache/tools');
const program = join(folder, 'versitygw');

export function isObjectStoreInstalled(): boolean {
  return existsSync(program);
}

/** Throws without an installed Go. Takes minutes the first time. */
function installObjectStore(): void {
  if (isObjectStoreInstalled()) return;
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync('go', ['install', `github.com/versity/versitygw/cmd/versitygw@${version}`], {
      env: { ...process.env, GOBIN: folder, CGO_ENABLED: '0' },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  } catch (error) {
    throw new Error('There is no S3 server here: it is compiled with Go 1.26 or newer, on the PATH.', {
      cause: error,
    });
  }
}

export type TestObjectStore = {
  /** `http://host:port/bucket`, with an existing bucket. */
  readonly url: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** The bucket, as a folder. */
  readonly folder: string;
  stop(): Promise<void>;
  /** Starts it again, at the same address with the same content. */
  start(): Promise<void>;
  close(): Promise<void>;
};

const accessKey = 'postern-tests';
const secretKey = 'not-a-secret-only-for-tests-on-loopback';

export async function startObjectStore(bucket = 'postern'): Promise<TestObjectStore> {
  const home = mkdtempSync(join(tmpdir(), 'postern-s3-'));
  for (const name of [`content/${bucket}`, 'attributes']) mkdirSync(join(home, name), { recursive: true });
  const port = await freePort();
  const address = `http://127.0.0.1:${port}`;
  let child = await launch(home, address);
  return {
    url: `${address}/${bucket}`,
    accessKey,
    secretKey,
    folder: join(home, 'content', bucket),
    stop: () => end(child),
    async start() {
      child = await launch(home, address);
    },
    async close() {
      await end(child);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function launch(home: string, address: string): Promise<ChildProcess> {
  const options = ['--port', new URL(address).host, '--quiet', '--health', '/health'];
  const backend = ['posix', '--sidecar', join(home, 'attributes'), join(home, 'content')];
  const child = spawn(program, [...options, ...backend], {
    env: { ...process.env, ROOT_ACCESS_KEY: accessKey, ROOT_SECRET_KEY: secretKey },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  // So that an interrupted run leaves no server behind.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  for (let attempt = 0; attempt < 150; attempt += 1) {
    if (child.exitCode !== null)
      throw new Error('The S3 server ended before it answered; its message is above.');
    const answer = await fetch(`${address}/health`).catch(() => undefined);
    if (answer?.ok) return child;
    await wait(100);
  }
  kill();
  throw new Error('The S3 server did not answer within 15 seconds.');
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

if (import.meta.main) {
  try {
    installObjectStore();
  } catch (error) {
    // Fails in CI; elsewhere the suites that need it are skipped.
    if (process.env['CI'] === 'true') throw error;
    console.error(String(error));
  }
}
