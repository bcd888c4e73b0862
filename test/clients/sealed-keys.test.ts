import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SealTo } from '../../src/features/keys/sealed-delivery.ts';
import { Browser } from '../faults/browser.ts';
import { administrator, freePorts, startProgram } from '../faults/program.ts';
import { run } from './generators.ts';

const program = join(import.meta.dirname, 'programs/sealed.py');
const packages = ['jwcrypto==1.6.1', 'pynacl==1.6.2', 'pyrage==1.4.0'];

test('other libraries open what the server sealed, and find a key that works', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-sealed-'));
  await run('python3', ['-m', 'venv', 'venv'], folder);
  const python = join(folder, 'venv/bin/python');
  const install = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', ...packages];
  const [server] = await Promise.all([
    startProgram({ dataDir: join(folder, 'data'), ports: await freePorts() }),
    run(python, install, folder),
  ]);
  const browser = new Browser(server.origin);
  await browser.signIn(administrator.email, administrator.password);
  const made: Record<string, { sealTo: SealTo; private: string }> = JSON.parse(
    await run(python, [program, 'keys'], folder),
  );
  const created = await Promise.all(
    Object.entries(made).map(async ([name, { sealTo, private: secret }]) => {
      const { data } = await browser.api('POST', '/tokens', {
        name,
        scopes: ['repos:read'],
        repositoryAccess: { mode: 'all' },
        sealTo,
      });
      return [name, data.id, { kind: sealTo.kind, private: secret, value: data.sealed.value }] as const;
    }),
  );
  const file = join(folder, 'sealed.json');
  await writeFile(file, JSON.stringify(Object.fromEntries(created.map(([name, , one]) => [name, one]))));
  const opened = JSON.parse(await run(python, [program, 'open', file], folder));
  expect(Object.keys(opened)).toHaveLength(6);
  for (const [name, id] of created) {
    const headers = { authorization: `Bearer ${opened[name]}` };
    const response = await fetch(`${server.origin}/api/v2/auth/context`, { headers });
    // The server's own envelope.
    const { data } = (await response.json()) as { data: { keyId: string } };
    expect([name, data.keyId]).toEqual([name, id]);
  }
  await server.end('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});
