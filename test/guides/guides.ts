import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Browser, Reply } from '../faults/browser.ts';
import {
  administrator,
  freePorts,
  type Installation,
  type Program,
  startProgram,
} from '../faults/program.ts';

/**
 * The shell samples of the guides, and a shell that runs them unchanged against the real program. Only the server's
 * address is replaced: `http://localhost:3000` becomes the test's.
 */
const root = join(import.meta.dirname, '../..');

/** The tools that the samples need and this machine does not have. In CI a missing tool fails. @throws Error */
export function missingTools(...tools: string[]): string[] {
  const missing = ['bash', 'curl', 'jq', 'openssl', ...tools].filter(isMissing);
  if (missing.length > 0 && process.env['CI'] !== undefined)
    throw new Error(`The guides need ${missing.join(', ')}: apt-get install ${missing.join(' ')}`);
  if (missing.length > 0) console.warn(`The guides are not tried: ${missing.join(', ')} missing.`);
  return missing;
}

function isMissing(tool: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
}

/** The shell samples of a document, after the heading `after`. */
export async function samplesOf(document: string, after = ''): Promise<string[]> {
  const text = await readFile(join(root, 'docs', document), 'utf8');
  const from = text.slice(text.indexOf(after));
  return [...from.matchAll(/^( *)```sh\n([^]*?)^ *```$/gm)].map(([, indent = '', body = '']) =>
    body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

type Typing = {
  readonly input?: string;
  readonly settings?: Readonly<Record<string, string>>;
  /** Called with everything printed so far, whenever there is more. */
  readonly said?: (printed: string) => void;
  /** Presses Ctrl-C when it resolves. */
  readonly interrupt?: Promise<unknown>;
};

/** Runs the script. @throws Error with all its output, when a command fails */
export async function typeIn(
  folder: string,
  script: string,
  { input = '', settings = {}, said = () => undefined, interrupt }: Typing = {},
): Promise<string> {
  // The guides assume a shell in Postern's folder; here the shell is in the folder of the cookie jar.
  const npm = `npm() { command npm --prefix '${root}' "$@"; }`;
  const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', `${npm}\n${script}`], {
    cwd: folder,
    // A terminal sends Ctrl-C to every program of the group.
    detached: interrupt !== undefined,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      NO_PROXY: '*',
      npm_config_update_notifier: 'false',
      ...settings,
    },
  });
  void interrupt?.then(() => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGINT');
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
      said(printed);
    });
  // A script that reads nothing may have ended already.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [code, signal] = await once(child, 'close');
  if (code !== 0 && (interrupt === undefined || signal !== 'SIGINT'))
    throw new Error(`ended with ${code}: ${script}\n${printed}`);
  return printed;
}

export type Guides = Awaited<ReturnType<typeof openGuides>>;

/** A server on one machine with its administrator signed in: the session is in the file `jar` of the folder. */
export async function openGuides() {
  const folder = mkdtempSync(join(tmpdir(), 'postern-guides-'));
  const installation: Installation = { dataDir: join(folder, 'data'), ports: await freePorts() };
  const { ports, dataDir } = installation;
  const origin = `http://localhost:${ports.web}`;
  let program: Program = await startProgram(installation);

  /** Runs in the folder of the cookie jar, with the server's settings. @throws Error with all its output */
  const bash = (script: string, { settings = {}, ...typing }: Typing = {}) =>
    typeIn(folder, script.replaceAll('http://localhost:3000', origin), {
      ...typing,
      settings: {
        DATA_DIR: dataDir,
        SERVICE_UI_URL: origin,
        PORT: String(ports.web),
        GATEWAY_PORT: String(ports.gateway),
        METRICS_PORT: String(ports.operations),
        LOG_LEVEL: 'warn',
        ...settings,
      },
    });

  /** Creates a key as step 3 of the tutorial does. */
  async function makeKey(name: string, scopes = ['repos:read']): Promise<{ id: string; token: string }> {
    const body = { name, scopes, repositoryAccess: { mode: 'all' }, ttlHours: 1 };
    writeFileSync(join(folder, 'body.json'), JSON.stringify(body));
    const made = await bash(
      `curl -s -b jar -H 'Origin: ${origin}' -H 'Content-Type: application/json' ${origin}/api/v2/me/tokens -d @body.json`,
    );
    return (JSON.parse(made) as { data: { id: string; token: string } }).data;
  }

  const [signIn = ''] = await samplesOf('how-to/get-a-session-by-curl.md', '## With a password, built-in');
  const signedIn = await bash(
    signIn.replace('ada@example.com', administrator.email).replace('at least twelve', administrator.password),
  );
  if (signedIn !== '200\n') throw new Error(`Signing in did not work:\n${signedIn}`);

  return {
    folder,
    installation,
    origin,
    bash,
    makeKey,
    stop: () => program.end('SIGTERM'),
    async start(change: Partial<Installation> = {}) {
      program = await startProgram({ ...installation, ...change });
      // On a busy machine the first responses can be 503: nothing was done, and a careful client retries.
      const ask = `curl -s -b jar -o /dev/null -w '%{http_code}' ${origin}/api/v2/sites`;
      while ((await bash(ask)) === '503') await wait(200);
    },
    async close() {
      await program.end('SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Follows the server's pages, and submits each form with its prefilled values and the next of `answers`. */
export async function answerForms(
  browser: Browser,
  address: string,
  answers: Record<string, string>[],
): Promise<Reply> {
  const follow = async (first: Reply): Promise<Reply> => {
    let reply = first;
    while (typeof reply.headers['location'] === 'string') {
      const next = new URL(reply.headers['location'], browser.origin);
      if (next.origin !== browser.origin) return reply;
      reply = await browser.navigate(next.href);
    }
    return reply;
  };
  let reply = await follow(await browser.navigate(address));
  for (const answer of answers) {
    const action = /<form method="post" action="([^"]+)"/.exec(reply.text)?.[1];
    if (action === undefined) throw new Error(`No form: ${reply.status} ${reply.text}`);
    const hidden = [...reply.text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
    const held = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]));
    reply = await follow(await browser.submit(action, { ...held, ...answer }));
  }
  return reply;
}
