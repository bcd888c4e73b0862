import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import type { Artifact, BuildLimits, LogEntry } from '../../src/features/engine/contract.ts';
import {
  createKubernetesEngine,
  type KubernetesEngine,
} from '../../src/features/engine/kubernetes/kubernetes-engine.ts';
import type { ServiceLogStore } from '../../src/features/engine/kubernetes/service-logs.ts';
import { findOutput, storeOutput } from '../../src/features/engine/output.ts';
import { fileBlobs } from '../../src/platform/blobs/file-blobs.ts';
import { create } from '../cluster/cluster.ts';
import { generousLimits, sleeps } from '../engines/engine-contract.ts';
import { programs } from '../engines/local-machine.ts';
import { createPodFiles } from './pod-files.ts';

export const image = 'localhost/base-node:test';
const nodeAddress = '10.77.0.1';

/** A namespace of the real cluster with engines of one test file. Checks that none of them reports a defect. */
export function createNamespace(namespace: string) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-kubernetes-'));
  const blobs = fileBlobs(join(folder, 'blobs'));
  const files = createPodFiles(blobs);
  const defects: unknown[] = [];
  const logs = memoryLogs();
  let transferUrl = '';

  const kubectl = (...args: string[]) =>
    execFileSync('kubectl', [`--namespace=${namespace}`, ...args], { encoding: 'utf8' });

  beforeAll(async () => {
    await blobs.prepare();
    transferUrl = await files.open(nodeAddress);
    kubectl('delete', 'namespace', namespace, '--ignore-not-found');
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
    await create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } });
  });
  afterEach(() => expect(defects.splice(0)).toEqual([]));
  afterAll(() => {
    files.close();
    kubectl('delete', 'namespace', namespace, '--wait=false');
    rmSync(folder, { recursive: true, force: true });
  });

  function engineWith(limits: Partial<BuildLimits> = {}): KubernetesEngine {
    return createKubernetesEngine({
      place: { namespace, podImage: 'localhost/postern:test', transferUrl },
      kubeconfig: process.env['KUBECONFIG'] ?? null,
      folder: join(folder, 'engine'),
      transfers: files.transfers,
      logs,
      limits: { ...generousLimits, ...limits },
      now: Date.now,
      later: (work, ms) => void setTimeout(work, ms),
      onDefect: (error) => void defects.push(error),
    });
  }

  /** Objects of the engine, and processes that the commands of these tests start. */
  function left(): string[] {
    const kinds = 'deployments,replicasets,jobs,pods,services,secrets,networkpolicies';
    const found = kubectl('get', kinds, '--selector=app.kubernetes.io/managed-by=postern', '--output=name');
    return [
      ...found.split('\n').filter((line) => line !== ''),
      // Each engine has a folder there, of which nothing is left.
      ...readdirSync(join(folder, 'engine'), { encoding: 'utf8', recursive: true }).filter((path) =>
        path.includes('/'),
      ),
      ...programs().filter((line) => Object.values(sleeps).includes(line)),
    ];
  }

  async function store(content: Readonly<Record<string, string>>): Promise<Artifact> {
    const place = mkdtempSync(join(folder, 'files-'));
    for (const [path, text] of Object.entries(content)) {
      mkdirSync(dirname(join(place, path)), { recursive: true });
      writeFileSync(join(place, path), text);
    }
    const found = await findOutput(place, { outputFiles: 100 });
    if (found.kind === 'failed') throw new Error(found.message);
    return await storeOutput(found, blobs);
  }

  return { kubectl, engineWith, left, store, read: (digest: string) => blobs.read(digest) };
}

function memoryLogs(): ServiceLogStore {
  const lines = new Map<string, LogEntry[]>();
  const last = new Map<string, number>();
  const of = (id: string, service: string) => lines.get(`${id}/${service}`) ?? [];
  return {
    async append(id, service, some) {
      const key = `${id}/${service}`;
      const first = (last.get(key) ?? 0) + 1;
      last.set(key, first + some.length - 1);
      lines.set(key, [...of(id, service), ...some.map((line, at) => ({ id: first + at, ...line }))]);
    },
    read: async (id, service, after, limit) =>
      of(id, service)
        .filter((entry) => entry.id > after)
        .slice(0, limit),
    async trim(id, service, maxBytes) {
      const kept = of(id, service);
      let bytes = kept.reduce((sum, { text }) => sum + Buffer.byteLength(text) + 1, 0);
      while (bytes > maxBytes) bytes -= Buffer.byteLength(kept.shift()?.text ?? '') + 1;
    },
    async remove(id) {
      for (const key of lines.keys()) if (key.startsWith(`${id}/`)) lines.delete(key);
    },
  };
}
