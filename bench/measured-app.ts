import { createApp } from '../src/composition/app.ts';
import { openBackends } from '../src/composition/backends/backends.ts';
import { readConfig } from '../src/config/read.ts';
import type { Engine } from '../src/features/engine/contract.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { keepTickShapes } from '../src/platform/tick-shapes.ts';

/** The whole server as npm start builds it, which limits no visitor. It does not listen yet. `engine`: of Environments. */
export async function startMeasuredApp(engine?: Engine) {
  keepTickShapes();
  const config = readConfig();
  const backends = await openBackends(config, { isServer: true });
  await migrate(backends.database);
  const app = await createApp(
    {
      ...config,
      passwordCost: { memoryKib: 8, passes: 1 },
      gatewayLimits: { perAddress: 0, perHost: 0 },
    },
    engine === undefined ? backends : { ...backends, engine },
  );
  await app.start();
  return { app, backends, config };
}
