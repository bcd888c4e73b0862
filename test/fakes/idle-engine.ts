import type { Engine } from '../../src/features/engine/contract.ts';

/** Builds and runs nothing: for installations whose worker does not run. */
const never = () => Promise.reject(new Error('Nothing runs here.'));
export const idleEngine: Engine = {
  place: { engine: 'local', platform: 'linux-x64' },
  build: never,
  apply: never,
  observe: never,
  logs: never,
  address: never,
  remove: never,
  sweep: never,
};
