import { ErrorReply } from 'redis';
import { AppError } from '../../core/errors.ts';
import type { Log } from '../log.ts';
import { within } from './deadline.ts';
import type { Kv, KvValues } from './kv.ts';
import { type KvScript, kvScript } from './kv-script.ts';
import { clusterLink, type RedisLink, singleLink } from './redis-link.ts';

export type RedisKv = Kv & {
  /**
   * Connects and checks the server. Rejects with `store_unavailable` when it cannot be reached in time (it keeps
   * trying until close()), with a plain Error when its configuration is wrong.
   */
  start(): Promise<void>;
  /** Integers come back as numbers, text as strings, Lua's false as null. */
  run(script: KvScript, keys: string[], args: string[]): Promise<unknown>;
  /** Of every server of a cluster. */
  facts(): Promise<readonly ServerFacts[]>;
};

/** What a server tells of itself. By INFO, because CONFIG is often forbidden. */
export type ServerFacts = { readonly version: string; readonly policy: string };

/** Of the text that INFO answers. A Valkey gives the version of Redis that it stands for. */
export function serverFacts(info: string): ServerFacts {
  const find = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? 'unknown';
  return { version: find('redis_version'), policy: find('maxmemory_policy') };
}

/** Null when the store can be used. A store that evicts would forget limits and revocation marks silently. */
export function obstacleTo({ version, policy }: ServerFacts): { problem: string; fix: string } | null {
  if (policy !== 'noeviction')
    return {
      problem: `the server's maxmemory-policy is ${policy}`,
      fix: 'set it to noeviction (a store that evicts would forget limits and revocations).',
    };
  if (!(Number(version.split('.')[0]) >= 7))
    return { problem: `the server is of version ${version}`, fix: 'use Redis 7 or newer, or Valkey.' };
  return null;
}

const answerMs = 250;
/** Asking a node who the others are, then connecting to each. */
const clusterConnectMs = 5_000;
/** Keys, so that no answer grows without bound. */
const mostInBatch = 1_000;
/** So many unanswered commands in a row mean that the connection is dead though nobody closed it. */
const missesBeforeReconnect = 20;

class Late extends Error {}

const newerScript = kvScript(`
local there = redis.call('GET', KEYS[1])
local known = there and tonumber(string.match(there, '^(%d+) '))
if known and known > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return 1
`);

/** What TIME answers: seconds and microseconds. */
function toMs([seconds, microseconds]: readonly string[]): number {
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Redis ≥ 7 or Valkey, one server or a cluster. Commands are never queued while the connection is down: they reject at once. */
export function redisKv({
  url,
  log,
  prefix = 'postern:',
}: {
  url: string;
  log: Log;
  prefix?: string;
}): RedisKv {
  let isLost = false;
  const options = {
    url,
    connectMs: answerMs,
    onError(error: Error) {
      // Said once an outage: the client reports every attempt to reconnect.
      if (!isLost) log.warn({ err: error }, 'key-value store lost');
      isLost = true;
    },
    onReady() {
      if (isLost) log.info({}, 'key-value store is back');
      isLost = false;
    },
  };
  // One server, until it says that it is a node of a cluster.
  let link = singleLink(options);

  const own = (key: string) => prefix + key;
  const unavailable = (cause: unknown) => new AppError('store_unavailable', { cause });
  const late = () => new Late('The key-value store did not answer in time.');

  // A network that swallows packets closes nothing: without this, TCP would go on hoping for a quarter of an hour.
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
      // Also a server's own refusal (loading, read-only, out of memory): whoever asked cannot use the store now.
      throw unavailable(error);
    }
  }

  /** Of the questions of one turn of the event loop; each key once. */
  type Batch = { readonly places: Map<string, number>; readonly answer: Promise<KvValues> };
  let batch: Batch | undefined;

  /**
   * Many ask at the same moment, mostly for the same keys (the parts of a page), and a command costs this process more
   * than its answer: whoever asks in one turn of the event loop shares one round trip.
   */
  async function getAll(keys: readonly string[]): Promise<KvValues> {
    if (batch === undefined || batch.places.size + keys.length > mostInBatch) {
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
    // Asked together, so the client writes them together.
    const [time, values] = await ask(() => Promise.all([link.time(), link.getMany(keys.map(own))]));
    return { values, now: toMs(time) };
  }

  async function evaluate({ source, sha1 }: KvScript, keys: string[], args: string[]): Promise<unknown> {
    try {
      return await link.runKnown(sha1, keys, args);
    } catch (error) {
      // A restarted server has forgotten the script; EVAL brings it back.
      if (error instanceof ErrorReply && error.message.startsWith('NOSCRIPT')) {
        return link.run(source, keys, args);
      }
      throw error;
    }
  }

  async function connect(to: RedisLink, ms = answerMs): Promise<void> {
    const connected = to.connect();
    // Reported through onError; the client goes on trying.
    connected.catch(() => {});
    await ask(() => connected, ms);
  }

  const facts = async () => (await ask(() => link.info('default'))).map(serverFacts);

  async function ping(): Promise<void> {
    for (const server of await facts()) {
      const obstacle = obstacleTo(server);
      if (obstacle !== null) throw new Error(`KV_URL: ${obstacle.problem}; ${obstacle.fix}`);
    }
  }

  return {
    async start() {
      await connect(link);
      const [about = ''] = await ask(() => link.info('cluster'));
      if (/^cluster_enabled:1/m.test(about)) {
        link.destroy();
        link = clusterLink(options);
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
