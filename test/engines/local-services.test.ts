import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe } from 'vitest';
import { findOutput, storeOutput } from '../../src/features/environments/engine/local/output.ts';
import type { LocalEngine } from '../../src/features/environments/engine/local/local-engine.ts';
import { sleeps } from './engine-contract.ts';
import { createMachine, isBwrapMissing, processesWithText, programs } from './local-machine.ts';
import { serviceContract } from './service-contract.ts';

const { folder, blobs, clock, local } = createMachine();

function harness(isolation: 'process' | 'bwrap') {
  const root = join(folder, isolation);
  let engine: LocalEngine | undefined;
  const close = async () => await engine?.stop();
  afterAll(close);
  return {
    isIsolated: isolation === 'bwrap',
    clock,
    close,
    async open(limits: { readonly processes?: number } = {}) {
      await close();
      engine = local(isolation, { limits });
      await engine.prepare();
      return engine;
    },
    async store(files: Readonly<Record<string, string>>) {
      const place = mkdtempSync(join(folder, 'files-'));
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(place, path)), { recursive: true });
        writeFileSync(join(place, path), content);
      }
      const found = await findOutput(place, { outputFiles: 100 });
      if (found.kind === 'failed') throw new Error(found.message);
      return await storeOutput(found, blobs);
    },
    /** Folders, processes with a mark of the engine, and those that the commands of these tests start. */
    left: () => [
      ...['builds', 'environments'].flatMap((name) => readdirSync(join(root, name))),
      ...processesWithText(`=${root}`).map(({ words }) => words),
      ...programs().filter((line) => Object.values(sleeps).includes(line)),
    ],
  };
}

describe('local, plain processes', () => {
  serviceContract(harness('process'));
});

describe.skipIf(isBwrapMissing)('local, bubblewrap', () => {
  serviceContract(harness('bwrap'));
});
