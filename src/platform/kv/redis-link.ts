import { createClient, createCluster, type RedisClientOptions } from 'redis';
import { lasting } from './lasting.ts';

/** The commands Postern uses, the same of one server and of a cluster. Keys are whole; every command rejects as the client does. */
export type RedisLink = {
  /** Tries until it succeeds; rejects when close() or destroy() comes first. */
  connect(): Promise<void>;
  /** False: commands reject at once. */
  isReady(): boolean;
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<boolean>;
  take(key: string): Promise<string | null>;
  /** How many were there. */
  delete(key: string): Promise<number>;
  getMany(keys: readonly string[]): Promise<readonly (string | null)[]>;
  /** Seconds and microseconds by one server's clock, always the same one's. */
  time(): Promise<readonly string[]>;
  runKnown(sha1: string, keys: string[], args: string[]): Promise<unknown>;
  run(source: string, keys: string[], args: string[]): Promise<unknown>;
  /** A section of INFO, of each server there is. */
  info(section: 'default' | 'cluster'): Promise<readonly string[]>;
  /** Leaves a connection that is dead though nobody closed it, and tries until there is another. */
  reconnect(): void;
  close(): Promise<void>;
  destroy(): void;
};

export type LinkOptions = {
  readonly url: string;
  readonly connectMs: number;
  readonly onError: (error: Error) => void;
  readonly onReady: () => void;
};

/** What every connection has. Commands are never queued while it is down: they reject at once. */
function commonOptions({ connectMs }: LinkOptions) {
  return {
    disableOfflineQueue: true,
    // The library's own limit ends when a command is written, so it would not notice a server that hangs; 0 = none.
    commandOptions: { timeout: 0 },
    maintNotifications: 'disabled',
    socket: {
      connectTimeout: connectMs,
      reconnectStrategy: (tries: number) => Math.min(50 * 2 ** tries, 1_000),
    },
  } as const satisfies RedisClientOptions;
}

const expiry = (ttlMs: number) => ({ type: 'PX', value: ttlMs }) as const;

export function singleLink(options: LinkOptions): RedisLink {
  function build() {
    const client = createClient({ url: options.url, ...commonOptions(options) });
    client.on('error', options.onError);
    client.on('ready', options.onReady);
    return client;
  }
  const connection = lasting({ build });
  const client = connection.current;
  return {
    connect: connection.connect,
    isReady: () => client().isReady,
    get: (key) => client().get(key),
    set: async (key, value, ttlMs) => void (await client().set(key, value, { expiration: expiry(ttlMs) })),
    setIfAbsent: async (key, value, ttlMs) =>
      (await client().set(key, value, { condition: 'NX', expiration: expiry(ttlMs) })) === 'OK',
    take: (key) => client().getDel(key),
    delete: (key) => client().del(key),
    getMany: (keys) => client().mGet([...keys]),
    time: () => client().time(),
    runKnown: (sha1, keys, args) => client().evalSha(sha1, { keys, arguments: args }),
    run: (source, keys, args) => client().eval(source, { keys, arguments: args }),
    info: async (section) => [await client().info(section)],
    reconnect: connection.reconnect,
    async close() {
      connection.end();
      if (client().isReady) await client().close();
      else client().destroy();
    },
    destroy() {
      connection.end();
      client().destroy();
    },
  };
}

/** Whose slot names the server that tells the time: servers' clocks differ, and what one issued another would judge. */
const clockKey = 'postern:clock';

/** Asking a node who the others are. A node that is frozen accepts the connection and would be waited for without end. */
const discoveryMs = 2_000;

/**
 * A cluster, found through any of its nodes: the one named, and those it was last known to have. Each node is connected for
 * itself, so that one that does not answer keeps nobody from the others. Keys that belong together share a hash tag; those
 * that are only read together are asked for one by one, at once: each node still gets one packet.
 */
export function clusterLink(options: LinkOptions): RedisLink {
  const { protocol, username, password } = new URL(options.url);
  const common = commonOptions(options);
  let isEnded = false;
  let known: { readonly host: string; readonly port: number }[] = [];

  function build() {
    const cluster = createCluster({
      rootNodes: [
        { url: options.url, ...common, socket: { ...common.socket, socketTimeout: discoveryMs } },
        ...known.map(({ host, port }) => ({ socket: { host, port, socketTimeout: discoveryMs } })),
      ],
      minimizeConnections: true,
      defaults: {
        ...common,
        ...(username === '' ? {} : { username: decodeURIComponent(username) }),
        ...(password === '' ? {} : { password: decodeURIComponent(password) }),
        ...(protocol === 'rediss:' ? { socket: { ...common.socket, tls: true } } : {}),
      },
    });
    // One that is still asking a node when everything ends says later that it was broken off.
    const onError = (error: Error) => {
      if (!isEnded) options.onError(error);
    };
    cluster.on('error', onError);
    cluster.on('node-error', onError);
    cluster.on('node-ready', options.onReady);
    cluster.on('connect', () => {
      // So that the first to ask does not wait. Who cannot be connected is asked again by whoever needs it.
      for (const master of cluster.masters) Promise.resolve(cluster.nodeClient(master)).catch(() => {});
    });
    return cluster;
  }
  const connection = lasting({ build });
  const cluster = connection.current;
  return {
    connect: connection.connect,
    isReady: () => cluster().isReady,
    get: (key) => cluster().get(key),
    set: async (key, value, ttlMs) => void (await cluster().set(key, value, { expiration: expiry(ttlMs) })),
    setIfAbsent: async (key, value, ttlMs) =>
      (await cluster().set(key, value, { condition: 'NX', expiration: expiry(ttlMs) })) === 'OK',
    take: (key) => cluster().getDel(key),
    delete: (key) => cluster().del(key),
    getMany: (keys) => Promise.all(keys.map((key) => cluster().get(key))),
    time: () => cluster().sendCommand<string[]>(clockKey, false, ['TIME']),
    runKnown: (sha1, keys, args) => cluster().evalSha(sha1, { keys, arguments: args }),
    run: (source, keys, args) => cluster().eval(source, { keys, arguments: args }),
    info: (section) =>
      Promise.all(
        cluster().masters.map(async (master) => {
          const client = await cluster().nodeClient(master);
          return await client.info(section);
        }),
      ),
    reconnect() {
      const { masters } = cluster();
      if (masters.length > 0) known = masters.map(({ host, port }) => ({ host, port }));
      connection.reconnect();
    },
    async close() {
      isEnded = true;
      connection.end();
      if (cluster().isReady) await cluster().close();
      else cluster().destroy();
    },
    destroy() {
      isEnded = true;
      connection.end();
      cluster().destroy();
    },
  };
}
