import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Browser } from './browser.ts';
import { freePorts, runCommand, startProgram } from './program.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-import-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('keys import takes a good file, refuses a bad one by line, and the keys work on the next start', async () => {
  const installation = { dataDir: join(folder, 'data'), ports: await freePorts() };
  const value = `app_svc_${createHash('sha256').update('older').digest('hex').slice(0, 40)}`;
  const good = {
    digest: createHash('sha256').update(value).digest('hex'),
    prefix: 'app_svc_',
    name: 'older robot',
    scopes: ['env:admin', 'repos:read'],
    createdAt: '2025-06-01T00:00:00Z',
    expiresAt: null,
  };
  const file = join(folder, 'keys.ndjson');
  writeFileSync(file, `${JSON.stringify(good)}\n${JSON.stringify({ ...good, digest: 'abc' })}\n`);
  const refused = await runCommand(installation, ['keys', 'import', file]);
  expect(refused.code).toBe(1);
  expect(refused.output).toContain(`${file}:2: digest: `);
  expect(refused.output).toContain('Nothing was imported.');
  writeFileSync(file, `${JSON.stringify(good)}\n`);
  const taken = await runCommand(installation, ['keys', 'import', file]);
  expect([taken.code, taken.output]).toEqual([0, 'Imported 1 key; skipped 0 that already existed.\n']);
  // The same record again, and one of someone who has no account here.
  const other = createHash('sha256').update('another').digest('hex');
  const stranger = { ...good, digest: other, prefix: 'app_pat_', scopes: ['repos:read'], owner: 'NpAc1' };
  writeFileSync(file, `${JSON.stringify(good)}\n${JSON.stringify(stranger)}\n`);
  const again = await runCommand(installation, ['keys', 'import', file]);
  expect([again.code, again.stdout]).toEqual([0, 'Imported 1 key; skipped 1 that already existed.\n']);
  expect(again.output).toContain(
    `${file}:2: warning: there is no account with the subject NpAc1 yet. The key works, and belongs to that account once it signs in.\n`,
  );
  const program = await startProgram(installation);
  const answer = await new Browser(program.origin).asKey(value, 'GET', '/repositories');
  expect(answer.status).toBe(200);
  expect((await program.end('SIGTERM')).code).toBe(0);
});
