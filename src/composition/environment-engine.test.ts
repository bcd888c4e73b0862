import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigError, type ConfigMistake } from '../config/config-error.ts';
import type { EnvironmentSettings } from '../config/read.ts';
import { systemClock } from '../core/clock.ts';
import { createLog } from '../platform/log.ts';
import { fileBlobs } from '../platform/blobs/file-blobs.ts';
import { openEnvironmentEngine, requireMachine } from './environment-engine.ts';

type Machine = NonNullable<Parameters<typeof openEnvironmentEngine>[2]>;

function open(
  environments: Partial<EnvironmentSettings>,
  { searchPath = process.env['PATH'] ?? '', ...machine }: Partial<Machine> & { searchPath?: string } = {},
) {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-engine-start-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  return openEnvironmentEngine(
    {
      dataDir,
      environments: {
        engine: 'local',
        isolation: 'process',
        databaseUrl: null,
        secretsDir: null,
        home: null,
        ...environments,
      },
      git: { allowsPrivate: false, allowsFiles: false, caFile: null, searchPath },
    },
    { blobs: fileBlobs(join(dataDir, 'blobs')), clock: systemClock, log: createLog({ level: 'silent' }) },
    { platform: 'linux', uid: 1_000, ...machine },
  );
}

async function refusalOf(opening: () => Promise<unknown>): Promise<ConfigMistake | undefined> {
  try {
    await opening();
  } catch (error) {
    if (error instanceof ConfigError) return error.mistakes[0];
    throw error;
  }
  return undefined;
}

/** What a machine is refused for. */
function refusedFor(settings: Partial<EnvironmentSettings>, machine: Partial<Machine>) {
  const whole = {
    engine: 'local',
    isolation: 'bwrap',
    databaseUrl: null,
    secretsDir: null,
    home: null,
    ...settings,
  } as const;
  return refusalOf(async () => requireMachine(whole, { platform: 'linux', uid: 1_000, ...machine }));
}

test('off: there is no engine, on any machine and for any user', async () => {
  expect(await open({ engine: 'off' })).toBeNull();
  const off = { engine: 'off', isolation: 'process' } as const;
  expect(await refusedFor(off, { platform: 'darwin', uid: 0 })).toBeUndefined();
});

test('plain processes: Postern says what that means', async () => {
  const opened = await open({});
  expect(opened?.isolation).toEqual({
    kind: 'process',
    message: expect.stringContaining(
      'everyone who can push to a registered repository controls Postern',
    ) as string,
  });
  expect(opened?.engine.place).toEqual({ engine: 'local', platform: `linux-${process.arch}` });
});

test('plain processes never run as root', async () => {
  expect(await refusedFor({ isolation: 'process' }, {})).toBeUndefined();
  expect(await refusedFor({ isolation: 'bwrap' }, { uid: 0 })).toBeUndefined();
  expect(await refusedFor({ isolation: 'process' }, { uid: 0 })).toMatchObject({
    setting: 'ENVIRONMENTS_ISOLATION',
    problem: expect.stringContaining('root') as string,
  });
});

test('without bubblewrap the start is refused, and names root where that is the user', async () => {
  const without = { searchPath: '/nonexistent' };
  const asRoot = await refusalOf(() => open({ isolation: 'bwrap' }, { ...without, uid: 0 }));
  expect(asRoot).toMatchObject({ setting: 'ENVIRONMENTS_ENGINE' });
  expect(asRoot?.problem).toContain('runs as root');
  expect(asRoot?.fix).not.toContain('ENVIRONMENTS_ISOLATION=process');
  const asUser = await refusalOf(() => open({ isolation: 'bwrap' }, without));
  expect(asUser?.problem).not.toContain('root');
  expect(asUser?.fix).toContain('ENVIRONMENTS_ISOLATION=process');
});

test('other systems than Linux are refused', async () => {
  expect(await refusedFor({}, { platform: 'darwin' })).toMatchObject({
    setting: 'ENVIRONMENTS_ENGINE',
    problem: expect.stringContaining('darwin') as string,
  });
});
