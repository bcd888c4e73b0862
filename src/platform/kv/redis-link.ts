import { createClient, createCluster, type RedisClientOptions } from 'redis';

/** The commands Postern uses, the same of one server and of a cluster. Keys are whole; every command rejects as the client does. */
export type RedisLink = {
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
  /** Leaves a connection that is dead though nobody closed it. */
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
  const client = createClient({ url: options.url, ...commonOptions(options) });
  client.on('error', options.onError);
  client.on('ready', options.onReady);
  return {
    async connect() {
      await client.connect();
    },
    isReady: () => client.isReady,
    get: (key) => client.get(key),
    set: async (key, value, ttlMs) => void (await client.set(key, value, { expiration: expiry(ttlMs) })),
    setIfAbsent: async (key, value, ttlMs) =>
      (await client.set(key, value, { condition: 'NX', expiration: expiry(ttlMs) })) === 'OK',
    take: (key) => client.getDel(key),
    delete: (key) => client.del(key),
    getMany: (keys) => client.mGet([...keys]),
    time: () => client.time(),
    runKnown: (sha1, keys, args) => client.evalSha(sha1, { keys, arguments: args }),
    run: (source, keys, args) => client.eval(source, { keys, arguments: args }),
    info: async (section) => [await client.info(section)],
    reconnect() {
      client.destroy();
      client.connect().catch(() => {});
    },
    async close() {
      if (client.isReady) await client.close();
      else if (client.isOpen) client.destroy();
    },
    destroy: () => client.destroy(),
  };
}

/** Whose slot names the server that tells the time: servers' clocks differ, and what one issued another would judge. */
const clockKey = 'postern:clock';

/**
 * A cluster, found through any of its nodes. Keys that belong together share a hash tag; those that are only read together
 * are asked for one by one, at once: each node still gets one packet.
 */
export function clusterLink(options: LinkOptions): RedisLink {
  const { protocol, username, password } = new URL(options.url);
  const common = commonOptions(options);
  const cluster = createCluster({
    rootNodes: [{ url: options.url, ...common }],
    defaults: {
      ...common,
      ...(username === '' ? {} : { username: decodeURIComponent(username) }),
      ...(password === '' ? {} : { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' ? { socket: { ...common.socket, tls: true } } : {}),
    },
  });
  cluster.on('error', options.onError);
  cluster.on('node-error', options.onError);
  cluster.on('node-ready', options.onReady);
  return {
    async connect() {
      await cluster.connect();
    },
    isReady: () => cluster.isOpen,
    get: (key) => cluster.get(key),
    set: async (key, value, ttlMs) => void (await cluster.set(key, value, { expiration: expiry(ttlMs) })),
    setIfAbsent: async (key, value, ttlMs) =>
      (await cluster.set(key, value, { condition: 'NX', expiration: expiry(ttlMs) })) === 'OK',
    take: (key) => cluster.getDel(key),
    delete: (key) => cluster.del(key),
    getMany: (keys) => Promise.all(keys.map((key) => cluster.get(key))),
    time: () => cluster.sendCommand<string[]>(clockKey, false, ['TIME']),
    runKnown: (sha1, keys, args) => cluster.evalSha(sha1, { keys, arguments: args }),
    run: (source, keys, args) => cluster.eval(source, { keys, arguments: args }),
    info: (section) =>
      Promise.all(
        cluster.masters.map(async (master) => {
          const client = await cluster.nodeClient(master);
          return await client.info(section);
        }),
      ),
    reconnect() {
      cluster.destroy();
      cluster.connect().catch(() => {});
    },
    async close() {
      if (cluster.isOpen) await cluster.close();
    },
    destroy: () => cluster.destroy(),
  };
}
