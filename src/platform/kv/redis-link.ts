import { createClient, createCluster, type RedisClientOptions } from 'redis';
import { reconnecting } from './reconnecting.ts';

/**
 * The commands Postern uses, the same for one server and for a cluster. Keys are complete, with their prefix. Commands
 * reject with the client's errors.
 */
export type RedisLink = {
  /** Retries until it succeeds; rejects when close() or destroy() is called first. */
  connect(): Promise<void>;
  /** False: commands reject at once. */
  isReady(): boolean;
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<boolean>;
  take(key: string): Promise<string | null>;
  /** The number of keys that existed. */
  delete(key: string): Promise<number>;
  getMany(keys: readonly string[]): Promise<readonly (string | null)[]>;
  /** Seconds and microseconds by the clock of one server, always the same server. */
  time(): Promise<readonly string[]>;
  runKnown(sha1: string, keys: string[], args: string[]): Promise<unknown>;
  run(source: string, keys: string[], args: string[]): Promise<unknown>;
  /** A section of INFO, from every server. */
  info(section: 'default' | 'cluster'): Promise<readonly string[]>;
  /** Abandons a connection that is dead although nothing closed it, and retries until a new one is connected. */
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

/** Options of every connection. Commands are never queued while it is down: they reject at once. */
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
  const connection = reconnecting({ build });
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

/**
 * The slot of this key selects the server whose clock is used. Servers' clocks differ, and one server must not judge
 * times that another issued.
 */
const clockKey = 'postern:clock';

/** Time limit for asking a node about the other nodes. A frozen node accepts the connection and never responds. */
const discoveryMs = 2_000;

/**
 * A cluster, found through any of its nodes: the configured one and those it was last known to have. Each node has its
 * own connection, so a node that does not respond does not block the others. Keys that belong together share a hash tag.
 * Keys that are only read together are requested one by one, at the same time: each node still gets one packet.
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
    // A client that is still discovering nodes when the link closes reports later that it was interrupted.
    const onError = (error: Error) => {
      if (!isEnded) options.onError(error);
    };
    cluster.on('error', onError);
    cluster.on('node-error', onError);
    cluster.on('node-ready', options.onReady);
    cluster.on('connect', () => {
      // Connects in advance, so that the first command need not wait. A node that fails here is connected again by the
      // next command that needs it.
      for (const master of cluster.masters) Promise.resolve(cluster.nodeClient(master)).catch(() => {});
    });
    return cluster;
  }
  const connection = reconnecting({ build });
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
