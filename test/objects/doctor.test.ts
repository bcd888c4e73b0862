import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startObjectStore, type TestObjectStore } from '../../scripts/object-store.ts';
import { freePorts, runCommand } from '../faults/program.ts';
import { type BadWay, isObjectStoreMissing, settingOf, startBadWay } from './object-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-doctor-'));
let server: TestObjectStore;
let way: BadWay;
beforeAll(async () => {
  if (isObjectStoreMissing) return;
  server = await startObjectStore();
  way = await startBadWay(server);
});
afterAll(async () => {
  await way?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test.skipIf(isObjectStoreMissing)(
  'doctor writes, reads and removes a blob, and fails when the store gives back other bytes',
  async () => {
    const settings = {
      OBJECT_STORE_URL: settingOf(way.url),
      OBJECT_STORE_ACCESS_KEY: server.accessKey,
      OBJECT_STORE_SECRET_KEY: server.secretKey,
    };
    const installation = { dataDir: join(folder, 'data'), ports: await freePorts(), settings };
    const well = await runCommand(installation, ['doctor', '--json']);
    expect(well.code).toBe(0);
    expect(JSON.parse(well.stdout)).toMatchObject({
      ok: true,
      checks: expect.arrayContaining([expect.objectContaining({ check: 'object_store', state: 'ok' })]),
    });
    way.set('wrong');
    const ill = await runCommand(installation, ['doctor', '--json']);
    expect(ill.code).toBe(1);
    expect(JSON.parse(ill.stdout).checks).toContainEqual(
      expect.objectContaining({
        check: 'object_store',
        state: 'failed',
        says: expect.stringContaining('bytes of another digest'),
      }),
    );
    expect(ill.output).not.toContain(server.secretKey);
    expect(way.seen().at(-1)).toMatch(/^DELETE /);
  },
);
