import fs, { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { applyMigrations } from './commands.ts';
import { existingSecrets, replaceGenerated } from '../config/generated-secrets.ts';
import { generatedNames } from '../config/names.ts';
import { type Config, readConfig } from '../config/read.ts';
import { openBackends } from '../composition/backends/backends.ts';
import { replaceBuiltin } from '../../test/replace-builtin.ts';
import { runRetire, runRotate } from './secrets.ts';

let dataDir: string;
let said: string;
const folder = () => join(dataDir, 'secrets');
const keyFile = () => join(folder(), 'encryption_key');
/** What the folder held of the encryption key each time its names were flushed. */
const flushed: string[] = [];
const { fsyncSync, fstatSync } = fs;
replaceBuiltin(fs, {
  fsyncSync(file) {
    fsyncSync(file);
    if (existsSync(keyFile()) && fstatSync(file).ino === statSync(folder()).ino)
      flushed.push(readFileSync(keyFile(), 'utf8'));
  },
});
const settings = (): Config => readConfig({ DATA_DIR: dataDir }, 'all', existingSecrets);
beforeEach(() => {
  flushed.length = 0;
  dataDir = join(mkdtempSync(join(tmpdir(), 'postern-secrets-')), 'data');
  readConfig({ DATA_DIR: dataDir });
  said = '';
  vi.spyOn(console, 'log').mockImplementation((text: string) => void (said += `${text}\n`));
  vi.spyOn(console, 'error').mockImplementation((text: string) => void (said += `${text}\n`));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(join(dataDir, '..'), { recursive: true, force: true });
});

describe('taking older values out', () => {
  test.each(generatedNames)('%s: the first is kept, the older are gone, and none is shown', async (name) => {
    runRotate(settings(), name);
    const [first = '', older = ''] = existingSecrets(name, dataDir);
    expect(await runRetire(settings(), name)).toBe(0);
    expect(existingSecrets(name, dataDir)).toEqual([first]);
    for (const value of [first, older]) expect(said).not.toContain(value);
  });

  test.each(generatedNames)(
    '%s: a value put in front after the settings were read takes none out',
    async (name) => {
      runRotate(settings(), name);
      const before = settings();
      runRotate(before, name);
      const values = existingSecrets(name, dataDir);
      expect(values).toHaveLength(3);
      expect(await runRetire(before, name)).toBe(1);
      expect(existingSecrets(name, dataDir)).toEqual(values);
      expect(said).toContain('Nothing was changed.');
    },
  );

  test('SE-03 a rotation that starts while the database is read removes no secret', async () => {
    runRotate(settings(), 'ENCRYPTION_KEY');
    const config = settings();
    const backends = await openBackends(config, { isServer: false });
    await applyMigrations(config, backends);
    await backends.close();
    const retiring = runRetire(config, 'ENCRYPTION_KEY');
    runRotate(config, 'ENCRYPTION_KEY');
    expect(await retiring).toBe(1);
    expect(existingSecrets('ENCRYPTION_KEY', dataDir).slice(1)).toEqual(config.encryptionKeys);
    expect(said).toContain('was rotated while this command ran');
  });
});

test.each(generatedNames)('%s: of two commands at once one says so, and takes no value away', (name) => {
  let refusal: unknown;
  const given = 'x'.repeat(43);
  const at = join(dataDir, 'secrets', `${name.toLowerCase()}.next`);
  replaceGenerated(name, dataDir, ([first = '']) => {
    try {
      runRotate(settings(), name);
    } catch (error) {
      refusal = error;
    }
    return [given, first];
  });
  expect(String(refusal)).toContain(`is being changed by another command, which has ${at}`);
  const [newest, older = ''] = existingSecrets(name, dataDir);
  expect(newest).toBe(given);
  expect(String(refusal)).not.toContain(older);
  expect(runRotate(settings(), name)).toBe(0);
  expect(existingSecrets(name, dataDir).slice(1)).toEqual([newest, older]);
  expect(existsSync(at)).toBe(false);
});

test('SE-03 a new value is on the disk with its name before the command is done: the power may go', async () => {
  const value = () => existingSecrets('ENCRYPTION_KEY', dataDir).join(',');
  // The first start's, before anything was sealed.
  expect(flushed[0]).toBe(value());
  flushed.length = 0;
  runRotate(settings(), 'ENCRYPTION_KEY');
  expect(flushed).toEqual([value()]);
  await runRetire(settings(), 'ENCRYPTION_KEY');
  expect(flushed.slice(1)).toEqual([value()]);
});
