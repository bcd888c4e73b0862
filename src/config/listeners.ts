import type { Config } from './read.ts';

/** Ports by the names of their settings. */
export type Listeners = Readonly<Record<string, number>>;

export function listenersOf({ port, gatewayPort, metricsPort, environments }: Config): Listeners {
  const { kubernetes } = environments;
  return {
    PORT: port,
    GATEWAY_PORT: gatewayPort,
    METRICS_PORT: metricsPort,
    ...(kubernetes === null ? {} : { ENVIRONMENTS_PORT: kubernetes.port }),
  };
}
