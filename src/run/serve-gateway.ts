import { createGatewayAlone } from '../composition/gateway/gateway-alone.ts';
import type { Config } from '../config/read.ts';
import { warnOfHosts } from '../operations/doctor/host-rules.ts';
import { openGatewayBackends } from '../composition/backends/backends.ts';
import { blaming } from '../composition/backends/start-errors.ts';
import { listen } from '../platform/listen.ts';
import { greetBriefly, runWorkload } from './lifecycle.ts';

/**
 * The standalone gateway: serves the content hosts of Sites and Environments and nothing else. It runs no migration, and
 * waits until another process has.
 */
export async function serveGateway(config: Config): Promise<number> {
  const backends = await openGatewayBackends(config);
  warnOfHosts(config, backends.log);
  const app = createGatewayAlone(config, backends);
  return await runWorkload(config, backends, {
    metrics: app.metrics,
    checks: { news: app.hasNews },
    async start() {
      await blaming('DATABASE_URL', app.start);
      app.jobs.start();
    },
    listen: () => listen(app.gateway, config.host, config.gatewayPort),
    greet: () => greetBriefly('gateway', config, backends),
    stop: app.stop,
  });
}
