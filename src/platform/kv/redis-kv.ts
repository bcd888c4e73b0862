import { ErrorReply } from 'redis';
import { AppError } from '../../core/errors.ts';
import type { Log } from '../log.ts';
import { within } from './deadline.ts';
import type { Kv, KvValues } from './kv.ts';
import { type KvScript, kvScript } from './kv-script.ts';
import { clusterLink, type RedisLink, singleLink } from './redis-link.ts';

export type RedisKv = Kv & {
  /**
   * Connects and checks the server. Rejects with `store_unavailable` when the server cannot be reached in time (it keeps
   * retrying until close()), and with a plain Error when the server's configuration is wrong. May be called again until
   * it succeeds.
   */
  start(): Promise<void>;
  /** Integers come back as numbers, text as strings, Lua's false as null. */
  run(script: KvScript, keys: string[], args: string[]): Promise<unknown>;
  /** Facts about every server of a cluster. */
  facts(): Promise<readonly ServerFacts[]>;
};

/** What a server reports about itself, from INFO, because CONFIG is often forbidden. */
export type ServerFacts = { readonly version: string; readonly policy: string };

/** Parses the output of INFO. Valkey reports the Redis version that it is compatible with. */
export function serverFacts(info: string): ServerFacts {
  const find = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? 'unknown';
  return { version: find('redis_version'), policy: find('maxmemory_policy') };
}

/** Null when the store can be used. A store that evicts keys would silently lose limits and revocation stamps. */
export function unavailableReasonFor({
  version,
  policy,
}: ServerFacts): { problem: string; fix: string } | null {
  if (policy !== 'noeviction')
    return {
      problem: `the server's maxmemory-policy is ${policy}`,
      fix: 'set it to noeviction (a store that evicts would forget limits and revocations).',
    };
  if (!(Number(version.split('.')[0]) >= 7))
    return { problem: `the server is of version ${version}`, fix: 'use Redis 7 or newer, or Valkey.' };
  return null;
}

/** Includes discovery of the other nodes and connecting to each. */
const clusterConnectMs = 5_000;
/** Maximum number of keys, so that no response grows without bound. */
const maxInBatch = 1_000;
/** This number of consecutive commands without a response means that the connection is dead although nothing closed it. */
const missesBeforeReconnect = 20;

class Late extends Error {}

const newerScript = kvScript(`
local there = redis.call('GET', KEYS[1])
local known = there and tonumber(string.match(there, '^(%d+) '))
if known and known > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return 1
`);

/** Converts the result of TIME: seconds and microseconds. */
function toMs([seconds, microseconds]: readonly string[]): number {
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Redis ≥ 7 or Valkey, one server or a cluster. Commands are never queued while the connection is down: they reject at once. */
export function redisKv({
  url,
  log,
  prefix = 'postern:',
  answerMs = 250,
}: {
  url: string;
  log: Log;
  prefix?: string;
  /** Milliseconds after which a server without an answer counts as unavailable. */
  answerMs?: number;
}): RedisKv {
  let isLost = false;
  /** Why the latest attempt to connect failed. */
  let trouble: Error | undefined;
  const options = {
    url,
    connectMs: answerMs,
    onError(error: Error) {
      trouble = error;
      // Logged once for each outage: the client reports every attempt to reconnect.
      if (!isLost) log.warn({ err: error }, 'lost the connection to the key-value store');
      isLost = true;
    },
    onReady() {
      if (isLost) log.info({}, 'connected to the key-value store again');
      isLost = false;
      trouble = undefined;
    },
  };
  // One server, until it reports that it is a node of a cluster.
  let link = singleLink(options);
  let isCluster = false;

  const own = (key: string) => prefix + key;
  const unavailable = (cause: unknown) => new AppError('store_unavailable', { cause });
  const late = () => new Late('The key-value store did not answer in time.');

  // A network that drops packets closes no connection. Without this, TCP would retry for a quarter of an hour.
  let misses = 0;
  function noteMiss(): void {
    misses += 1;
    if (misses < missesBeforeReconnect || !link.isReady()) return;
    misses = 0;
    link.reconnect();
  }

  async function ask<T>(command: () => Promise<T>, ms = answerMs): Promise<T> {
    try {
      const answer = await within(ms, command(), late);
      misses = 0;
      return answer;
    } catch (error) {
      if (error instanceof Late) noteMiss();
      // Includes the server's own refusals (loading, read-only, out of memory): the caller cannot use the store now.
      throw unavailable(error);
    }
  }

  /** The reads of one turn of the event loop, each key once. */
  type Batch = { readonly places: Map<string, number>; readonly answer: Promise<KvValues> };
  let batch: Batch | undefined;

  /**
   * Many callers read at the same moment, mostly the same keys (the parts of a page), and a command costs this process
   * more than its response. So all reads of one turn of the event loop share one round trip.
   */
  async function getAll(keys: readonly string[]): Promise<KvValues> {
    if (batch === undefined || batch.places.size + keys.length > maxInBatch) {
      const places = new Map<string, number>();
      const answer = new Promise((resolve) => setImmediate(resolve)).then(() => {
        if (batch?.places === places) batch = undefined;
        return readAll([...places.keys()]);
      });
      batch = { places, answer };
    }
    const { places, answer } = batch;
    for (const key of keys) if (!places.has(key)) places.set(key, places.size);
    const { values, now } = await answer;
    return { values: keys.map((key) => values[places.get(key) ?? -1] ?? null), now };
  }

  async function readAll(keys: readonly string[]): Promise<KvValues> {
    // Requested together, so that the client sends them together.
    const [time, values] = await ask(() => Promise.all([link.time(), link.getMany(keys.map(own))]));
    return { values, now: toMs(time) };
  }

  async function evaluate({ source, sha1 }: KvScript, keys: string[], args: string[]): Promise<unknown> {
    try {
      return await link.runKnown(sha1, keys, args);
    } catch (error) {
      // A restarted server no longer has the script; EVAL loads it again.
      if (error instanceof ErrorReply && error.message.startsWith('NOSCRIPT')) {
        return link.run(source, keys, args);
      }
      throw error;
    }
  }

  async function connect(to: RedisLink, ms = answerMs): Promise<void> {
    const connected = to.connect();
    // Reported through onError; the client keeps retrying.
    connected.catch(() => {});
    await ask(() => connected, ms).catch((error: unknown) => {
      // The error of the attempts says more than the timeout.
      throw trouble === undefined ? error : unavailable(trouble);
    });
  }

  const facts = async () => (await ask(() => link.info('default'))).map(serverFacts);

  async function ping(): Promise<void> {
    for (const server of await facts()) {
      const unavailableReason = unavailableReasonFor(server);
      if (unavailableReason !== null)
        throw new Error(`KV_URL: ${unavailableReason.problem}; ${unavailableReason.fix}`);
    }
  }

  return {
    async start() {
      // A connected link must not be connected again.
      if (!link.isReady()) await connect(link, isCluster ? clusterConnectMs : answerMs);
      const [about = ''] = await ask(() => link.info('cluster'));
      if (!isCluster && /^cluster_enabled:1/m.test(about)) {
        link.destroy();
        link = clusterLink(options);
        isCluster = true;
        await connect(link, clusterConnectMs);
      }
      await ping();
    },
    run: (script, keys, args) => ask(() => evaluate(script, keys.map(own), args)),
    get: (key) => ask(() => link.get(own(key))),
    set: (key, value, { ttlMs }) => ask(() => link.set(own(key), value, ttlMs)),
    take: (key) => ask(() => link.take(own(key))),
    delete: async (key) => (await ask(() => link.delete(own(key)))) === 1,
    setIfAbsent: (key, value, { ttlMs }) => ask(() => link.setIfAbsent(own(key), value, ttlMs)),
    getAll,
    setIfNewer: async (key, { revision, text }, { ttlMs }) =>
      (await ask(() => evaluate(newerScript, [own(key)], [String(revision), text, String(ttlMs)]))) === 1,
    time: async () => toMs(await ask(() => link.time())),
    ping,
    facts,
    async close() {
      // destroy() also ends the attempts to reconnect; close() would wait for a server that is gone.
      await within(answerMs, link.close(), late).catch(() => link.destroy());
    },
  };
}
