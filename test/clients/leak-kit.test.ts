import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { keySamples } from '../key-samples.ts';
import { run } from './generators.ts';

const version = 'v8.30.1';
const root = join(import.meta.dirname, '../..');
// Go compiles it once.
const tools = join(root, 'node_modules/.cache/tools');

test('gitleaks with the rules of the leak kit finds every key, and besides keys only what has the form of one', async () => {
  await run('go', ['install', `github.com/zricethezav/gitleaks/v8@${version}`], root, {
    GOBIN: tools,
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
  });
  const folder = await mkdtemp(join(tmpdir(), 'postern-leak-kit-'));
  await mkdir(join(folder, 'samples'));
  const samples = keySamples();
  for (const [at, { text }] of samples.entries()) await writeFile(join(folder, 'samples', `${at}.txt`), text);
  const config = join(root, 'deploy/leak-kit/gitleaks.toml');
  const report = ['--report-format', 'json', '--report-path', 'report.json', '--exit-code', '0'];
  await run(join(tools, 'gitleaks'), ['dir', 'samples', '--config', config, ...report], folder);
  const findings: { File: string; RuleID: string; Secret: string }[] = JSON.parse(
    await readFile(join(folder, 'report.json'), 'utf8'),
  );
  for (const [at, { title, keys, isOnlyShaped = false }] of samples.entries()) {
    const own = findings.filter(({ File }) => basename(File) === `${at}.txt`);
    expect([title, own.length]).toEqual([title, isOnlyShaped ? 1 : keys.length]);
    expect([title, keys.filter((key) => !own.some(({ Secret }) => Secret.includes(key)))]).toEqual([
      title,
      [],
    ]);
    for (const { RuleID } of own) expect(RuleID).toMatch(/^postern-/);
  }
  await rm(folder, { recursive: true, force: true });
});
