import { afterAll, describe, onTestFinished } from 'vitest';
import type { KubernetesEngine } from '../../src/features/engine/kubernetes/kubernetes-engine.ts';
import { engineContract } from '../engines/engine-contract.ts';
import { serviceContract } from '../engines/service-contract.ts';
import { createNamespace, image } from './namespace.ts';

/** The engine on a real cluster: test/cluster/run.sh runs this inside its namespaces. */
const { engineWith, left, store, read } = createNamespace('environments-b');

describe('kubernetes', () => {
  engineContract({
    image,
    isIsolated: true,
    left,
    async open(limits) {
      const engine = engineWith(limits);
      onTestFinished(() => engine.stop());
      await engine.prepare();
      return { engine, read };
    },
  });

  let engine: KubernetesEngine | undefined;
  const close = async () => await engine?.stop();
  afterAll(close);
  serviceContract({
    image,
    isIsolated: true,
    left,
    close,
    clock: { now: 0 },
    async open(limits = {}) {
      await close();
      engine = engineWith(limits);
      await engine.prepare();
      return engine;
    },
    store,
  });
});
