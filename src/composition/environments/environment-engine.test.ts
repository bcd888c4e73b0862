import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isBwrapMissing } from '../../../test/engines/local-machine.ts';
import { ConfigError, type ConfigMistake } from '../../config/config-error.ts';
import type { EnvironmentSettings } from '../../config/read.ts';
import { systemClock } from '../../core/clock.ts';
import { EngineUnavailable } from '../../features/engine/contract.ts';
import { createLog } from '../../platform/log.ts';
import { openDatabase } from '../../platform/database/database.ts';
import { embeddedDatabase } from '../../platform/database/embedded.ts';
import { fileBlobs } from '../../platform/blobs/file-blobs.ts';
import { openEnvironmentEngine, requireMachine } from './environment-engine.ts';

type Machine = NonNullable<Parameters<typeof openEnvironmentEngine>[2]>;

function open(
  environments: Partial<EnvironmentSettings>,
  {
    searchPath = process.env['PATH'] ?? '',
    workload = 'all',
    ...machine
  }: Partial<Machine> & { searchPath?: string; workload?: 'all' | 'web' | 'worker' } = {},
) {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-engine-start-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  return openEnvironmentEngine(
    {
      dataDir,
      encryptionKeys: ['encryption-key-of-the-tests-0123456789'],
      environments: {
        engine: 'local',
        isolation: 'process',
        kubernetes: null,
        databaseUrl: null,
        secretsDir: null,
        home: null,
        ...environments,
      },
      git: { allowsFiles: false, searchPath },
    },
    {
      database: openDatabase(embeddedDatabase({}).pool),
      blobs: fileBlobs(join(dataDir, 'blobs')),
      clock: systemClock,
      log: createLog({ level: 'silent' }),
      workload,
    },
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
  const local = {
    engine: 'local',
    isolation: 'bwrap',
    kubernetes: null,
    databaseUrl: null,
    secretsDir: null,
    home: null,
  } as const;
  const whole = { ...local, ...settings };
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
    isComplete: false,
    message: expect.stringContaining(
      'everyone who can push to a registered repository controls Postern',
    ) as string,
  });
  expect(opened?.engine).toMatchObject({ place: { engine: 'local', platform: `linux-${process.arch}` } });
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

test.skipIf(isBwrapMissing)('without slirp4netns, Postern says what else can be reached', async () => {
  const programs = mkdtempSync(join(tmpdir(), 'postern-programs-'));
  onTestFinished(() => rmSync(programs, { recursive: true }));
  for (const name of ['bwrap', 'du', 'chmod', 'cp', 'mkdir', 'mount', 'setpriv', 'unshare'])
    symlinkSync(execFileSync('which', [name], { encoding: 'utf8' }).trim(), join(programs, name));
  const opened = await open({ isolation: 'bwrap' }, { searchPath: programs });
  onTestFinished(() => opened?.stop());
  expect(opened?.isolation).toEqual({
    kind: 'bwrap',
    isComplete: false,
    message: expect.stringContaining('code can reach loopback addresses and other Environments') as string,
  });
});

const pods = {
  namespace: 'environments',
  podImage: 'registry.example.com/postern:0.1.0',
  port: 3002,
  webUrl: 'http://postern-web-files.postern.svc',
  kubeconfig: null,
};

test('web knows that a worker runs pods, on any system and for any user, and opens nothing', async () => {
  const settings = { engine: 'kubernetes', isolation: 'bwrap', kubernetes: pods } as const;
  expect(await refusedFor(settings, { platform: 'darwin', uid: 0 })).toBeUndefined();
  expect(await open(settings, { workload: 'web' })).toMatchObject({
    engine: 'elsewhere',
    isolation: {
      kind: 'kubernetes',
      isComplete: true,
      message: expect.stringContaining('NetworkPolicy') as string,
    },
  });
});

test('a worker starts while the API server is unavailable, and is refused without credentials', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-kubeconfig-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, 'config');
  const asWorker = (place: string | null) =>
    open(
      { engine: 'kubernetes', isolation: 'bwrap', kubernetes: { ...pods, kubeconfig: place } },
      { workload: 'worker' },
    );
  const refusal = { setting: 'KUBECONFIG', problem: expect.any(String) as string };
  expect(await refusalOf(() => asWorker(null))).toMatchObject(refusal);
  expect(await refusalOf(() => asWorker(kubeconfig))).toMatchObject(refusal);
  writeFileSync(kubeconfig, 'token: a-secret-token: {');
  expect(JSON.stringify(await refusalOf(() => asWorker(kubeconfig)))).not.toContain('a-secret-token');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      'current-context': 'here',
      clusters: [{ name: 'away', cluster: { server: 'https://127.0.0.1:1' } }],
      users: [{ name: 'postern', user: { token: 'a-secret-token' } }],
      contexts: [{ name: 'here', context: { cluster: 'away', user: 'postern' } }],
    }),
  );
  const opened = await asWorker(kubeconfig);
  if (opened === null || opened.engine === 'elsewhere') throw new Error('A worker has an engine.');
  await expect(opened.engine.observe('env_one')).rejects.toBeInstanceOf(EngineUnavailable);
  await opened.stop();
});

test('other systems than Linux are refused', async () => {
  expect(await refusedFor({}, { platform: 'darwin' })).toMatchObject({
    setting: 'ENVIRONMENTS_ENGINE',
    problem: expect.stringContaining('darwin') as string,
  });
});
