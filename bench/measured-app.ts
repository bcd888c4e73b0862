import { createApp } from '../src/composition/app.ts';
import { openBackends } from '../src/composition/backends.ts';
import { readConfig } from '../src/config/read.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { keepTickShapes } from '../src/platform/tick-shapes.ts';

/** The whole server as npm start builds it, which limits no visitor. It does not listen yet. */
export async function startMeasuredApp() {
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
    backends,
  );
  await app.start();
  return { app, backends, config };
}
