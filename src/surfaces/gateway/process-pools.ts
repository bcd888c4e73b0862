import { Agent } from 'node:http';
import { LRUCache } from 'lru-cache';

/**
 * Open connections to processes of Environments, a pool for each service. A pool belongs to the address that the worker
 * observed for the current start: a new address gets a new pool, and the idle connections of the old one are closed.
 */
export type ProcessPools = {
  agentOf(service: { readonly name: string; readonly address: string }): Agent;
  close(): void;
};

/** Connections to one service, and idle ones among them. */
const maxSockets = 1_024;
const maxIdleSockets = 16;
/** Milliseconds. */
const idleMs = 30_000;
const maxServices = 2_000;

export function createProcessPools(): ProcessPools {
  const pools = new LRUCache<string, { readonly address: string; readonly agent: Agent }>({
    max: maxServices,
    // Requests under way keep their connections.
    dispose: ({ agent }) => {
      for (const sockets of Object.values(agent.freeSockets))
        for (const socket of sockets ?? []) socket.destroy();
    },
  });
  return {
    agentOf({ name, address }) {
      const known = pools.get(name);
      if (known?.address === address) return known.agent;
      const agent = new Agent({
        keepAlive: true,
        maxSockets,
        maxFreeSockets: maxIdleSockets,
        timeout: idleMs,
      });
      pools.set(name, { address, agent });
      return agent;
    },
    close: () => pools.clear(),
  };
}

/** Undefined for text that is not `host:port`. */
export function hostAndPort(address: string): { readonly host: string; readonly port: number } | undefined {
  const [, host, port] = /^\[?([^\]/@?#\s]+)\]?:(\d{1,5})$/.exec(address) ?? [];
  return host === undefined || port === undefined ? undefined : { host, port: Number(port) };
}
