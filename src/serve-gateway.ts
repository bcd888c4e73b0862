import { createGatewayAlone } from './app-gateway-alone.ts';
import type { Config } from './config.ts';
import { warnOfHosts } from './host-rules.ts';
import { openGatewayParts } from './parts.ts';
import { greetBriefly, listen, openOperations, runUntilStopped } from './running.ts';

/** The gateway on its own: content hosts of Sites, and nothing else. It waits for no migration and makes none. */
export async function serveGateway(config: Config): Promise<number> {
  const parts = await openGatewayParts(config);
  warnOfHosts(config, parts.log);
  const app = createGatewayAlone(config, parts);
  await app.start();
  await listen(app.gateway, config.host, config.gatewayPort);
  const operations = await openOperations(config, app.metrics, parts, { news: app.hasNews });
  app.jobs.start();
  greetBriefly('gateway', config, parts);
  await runUntilStopped({
    log: parts.log,
    operations,
    async stop() {
      await app.stop();
      await parts.close();
    },
  });
  return 0;
}
