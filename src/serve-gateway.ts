import { createGatewayAlone } from './app-gateway-alone.ts';
import type { Config } from './config.ts';
import { openGatewayParts } from './parts.ts';
import { greetBriefly, listen, runUntilStopped } from './running.ts';
import { createOperationsServer } from './surfaces/web/operations.ts';

/** The gateway on its own: content hosts of Sites, and nothing else. It waits for no migration and makes none. */
export async function serveGateway(config: Config): Promise<number> {
  const parts = await openGatewayParts(config);
  const app = createGatewayAlone(config, parts);
  await app.start();
  let isStopping = false;
  const operations = createOperationsServer({
    metrics: app.metrics,
    checks: { database: () => parts.database.ping(), kv: parts.pingKv, blobs: parts.pingBlobs },
    isStopping: () => isStopping,
  });
  await listen(app.gateway, config.host, config.gatewayPort);
  await listen(operations, config.host, config.metricsPort);
  app.jobs.start();
  greetBriefly('gateway', config, parts);
  await runUntilStopped({
    log: parts.log,
    operations,
    onStopping: () => {
      isStopping = true;
    },
    async stop() {
      await app.stop();
      await parts.close();
    },
  });
  return 0;
}
