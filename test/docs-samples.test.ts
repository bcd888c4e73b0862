import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { administrator, freePorts, type Program, runCommand, startProgram } from './faults/program.ts';

// What the guides for an emergency tell people to type is typed here, against the real program, letter by letter.
const root = join(import.meta.dirname, '..');
const isMissing = (tool: string) => {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
};
const missing = ['bash', 'curl', 'jq', 'openssl'].filter(isMissing);
if (missing.length > 0 && process.env['CI'] !== undefined)
  throw new Error(`The guides need ${missing.join(', ')}: apt-get install ${missing.join(' ')}`);
if (missing.length > 0) console.warn(`The guides are not tried: ${missing.join(', ')} missing.`);

async function samplesOf(document: string, after = ''): Promise<string[]> {
  const text = await readFile(join(root, 'docs', document), 'utf8');
  const from = text.slice(text.indexOf(after));
  return [...from.matchAll(/^( *)```sh\n([^]*?)^ *```$/gm)].map(([, indent = '', body = '']) =>
    body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

describe.skipIf(missing.length > 0)('the samples of the guides', () => {
  let folder: string;
  let installation: Parameters<typeof startProgram>[0];
  let program: Program;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'postern-guides-'));
    installation = { dataDir: join(folder, 'data'), ports: await freePorts() };
    program = await startProgram(installation);
    const [signIn = ''] = await samplesOf('tutorial.md', '### 2. Sign in');
    const signedIn = await bash(
      signIn
        .replace('ada@example.com', administrator.email)
        .replace('at least twelve', administrator.password),
    );
    if (!signedIn.includes('"kind": "user"')) throw new Error(`Signing in did not work:\n${signedIn}`);
  });
  afterAll(async () => {
    await program.end('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs it in the folder with the cookie jar. @throws Error with all that it printed */
  async function bash(script: string, input = ''): Promise<string> {
    const child = spawn(
      'bash',
      ['--norc', '-euo', 'pipefail', '-c', script.replace('http://localhost:3000', program.origin)],
      {
        cwd: folder,
        env: { PATH: process.env['PATH'], HOME: folder, NO_PROXY: '*' },
      },
    );
    let printed = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        printed += chunk.toString();
      });
    // One that reads nothing may have ended before.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`ended with ${code}: ${script}\n${printed}`);
    return printed;
  }

  /** A key as step 2 of the guide makes it. */
  async function makeKey(name: string): Promise<{ id: string; token: string }> {
    const body = JSON.stringify({
      name,
      scopes: ['repos:read'],
      repositoryAccess: { mode: 'all' },
      ttlHours: 1,
    });
    writeFileSync(join(folder, 'body.json'), body);
    const made = await bash(
      `curl -s -b jar -H 'Origin: ${program.origin}' -H 'Content-Type: application/json' ${program.origin}/api/v2/me/tokens -d @body.json`,
    );
    return (JSON.parse(made) as { data: { id: string; token: string } }).data;
  }

  async function trailOf(keyId: string): Promise<{ event: string; keyIds: string[] }[]> {
    const read = await bash(
      `curl -s -b jar '${program.origin}/api/v2/audit/events?keyId=${keyId}&limit=100'`,
    );
    return (JSON.parse(read) as { data: { event: string; keyIds: string[] }[] }).data;
  }

  test('change a setting, verify it, and go back', async () => {
    const script = (await samplesOf('how-to/change-settings-safely.md')).join('\n');
    const printed = await bash(script);
    expect(printed).toContain('version 0, 600 requests a minute');
    expect(printed).toMatch(/"version": 1[^]*true[^]*"version": 2/);
    const now = await bash(`curl -s -b jar ${program.origin}/api/v2/me/tokens/policy`);
    expect(JSON.parse(now)).toMatchObject({ data: { rateLimit: { requestsPerMinute: 600 } } });
  });

  test('RV-04 respond to a leak: revoked, replaced, verified, and the trail shows both keys', async () => {
    const [
      revokeSelf = '',
      revokeById = '',
      revokeAll = '',
      replace = '',
      verify = '',
      read = '',
      watch = '',
      off = '',
      back = '',
    ] = await samplesOf('how-to/respond-to-a-leak.md');
    const leaked = await makeKey('deploy');
    expect(await bash(revokeSelf, `${leaked.token}\n`)).not.toContain('"code"');
    const base = `BASE=${program.origin}\nKEY_ID=${leaked.id}\n`;
    const use = (token: string) =>
      bash(
        `curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer ${token}' ${program.origin}/api/v2/auth/context`,
      );
    expect(await use(leaked.token)).toBe('401');

    const second = await makeKey('another');
    await bash(`BASE=${program.origin}\n${revokeById.replace('KEY_ID=…', `KEY_ID=${second.id}`)}`);
    expect(await use(second.token)).toBe('401');

    const replaced = await bash(`${base}${replace}\n${verify}\necho "token=$POSTERN_KEY"`);
    expect(replaced).toContain('"repos:read"');
    const token = /token=(\S+)/.exec(replaced)?.[1] ?? '';
    expect(await use(token)).toBe('200');

    const story = await bash(`${base}${read}`);
    expect(story).toContain('api_key.created');
    expect(story).toContain('api_key.revoked');
    expect(await bash(`${base}${watch}`)).not.toContain('error');
    const mine = JSON.parse(await bash(`curl -s -b jar '${program.origin}/api/v2/me/tokens?limit=100'`)) as {
      data: { id: string; name: string }[];
    };
    const next = mine.data.find(({ name }) => name === 'deploy, after the leak')?.id ?? '';
    expect((await trailOf(leaked.id)).map(({ event }) => event)).toEqual(
      expect.arrayContaining(['api_key.created', 'api_key.revoked']),
    );
    expect((await trailOf(next)).map(({ event }) => event)).toContain('api_key.created');

    await bash(`${base}${off}`);
    expect(await use(token)).toBe('403');
    await bash(`${base}${back}`);
    expect(await use(token)).toBe('200');
    await bash(`${base}${revokeAll}`);
    expect(await use(token)).toBe('401');
  });

  test('RV-04 rotate a key: one event names both keys, and the old one ends after its grace', async () => {
    const [rotate = '', keep = '', verify = '', look = ''] = await samplesOf('how-to/rotate-a-key.md');
    const old = await makeKey('nightly');
    const begin = rotate
      .replace(/KEY_ID=….*/, `KEY_ID=${old.id}`)
      .replace('"graceSeconds": 300', '"graceSeconds": 0');
    const printed = await bash(`${begin}\n${keep}\n${verify}\n${look}\necho "token=$POSTERN_KEY"`);
    expect(printed).toContain('"keyType": "personal"');
    const context = await bash(
      `curl -s -H 'Authorization: Bearer ${/token=(\S+)/.exec(printed)?.[1]}' ${program.origin}/api/v2/auth/context`,
    );
    const next = (JSON.parse(context) as { data: { keyId?: string; credential?: { id: string } } }).data;
    const rotation = (await trailOf(old.id)).find(({ event }) => event === 'api_key.rotated');
    expect(rotation?.keyIds).toHaveLength(2);
    expect(rotation?.keyIds).toContain(old.id);
    expect(JSON.stringify(next)).not.toContain(old.id);
  });

  test('SE-03 rotate the secrets of one machine: nobody is signed out by the new value, nor by taking the older out', {
    timeout: 6 * 60_000,
  }, async () => {
    const [rotate, signingKeys, retire] = (await samplesOf('how-to/rotate-secrets.md')).map((sample) =>
      sample
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.replace('npm start -- ', '').split(' ')),
    );
    const run = async (commands: string[][] | undefined) => {
      for (const args of commands ?? []) {
        const { code, output } = await runCommand(installation, args);
        expect([args.join(' '), code, output]).toEqual([args.join(' '), 0, expect.any(String)]);
      }
    };
    // An answer that needs the sealed token of the session.
    const isSignedIn = () =>
      bash(`curl -s -b jar -o /dev/null -w '%{http_code}' ${program.origin}/api/v2/sites`);
    expect(await isSignedIn()).toBe('200');
    const key = await makeKey('of before');
    await run(rotate);
    await program.end('SIGTERM');
    // What is still sealed under the older value keeps it.
    const early = await runCommand(installation, ['secrets', 'retire', 'ENCRYPTION_KEY']);
    expect([early.code, early.output]).toEqual([1, expect.stringContaining('Nothing was changed')]);
    await run(signingKeys);
    program = await startProgram(installation);
    expect(await isSignedIn()).toBe('200');
    const told = await bash(
      `curl -s -b jar '${program.origin}/api/v2/audit/events?event=config.signing_keys.changed'`,
    );
    expect(JSON.parse(told)).toMatchObject({
      data: [{ actor: { kind: 'system' }, details: { kid: expect.stringMatching(/^[\w-]{43}$/) } }],
    });
    const metrics = () => bash(`curl -s http://127.0.0.1:${installation.ports.operations}/metrics`);
    await expect.poll(metrics, { timeout: 60_000 }).toMatch(/job_name="reseal"/);
    await program.end('SIGTERM');
    await run(retire);
    program = await startProgram(installation);
    expect(await isSignedIn()).toBe('200');
    expect(
      await bash(
        `curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer ${key.token}' ${program.origin}/api/v2/auth/context`,
      ),
    ).toBe('200');
  });
});
