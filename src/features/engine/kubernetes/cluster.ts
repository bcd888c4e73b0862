import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https, { type RequestOptions } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type {
  CoreV1Event,
  V1Deployment,
  V1Job,
  V1NetworkPolicy,
  V1Pod,
  V1Secret,
  V1Service,
} from '@kubernetes/client-node';
import { EngineUnavailable } from '../contract.ts';
import { labels, manager } from './objects.ts';

export type Objects = {
  deployments: V1Deployment;
  events: CoreV1Event;
  jobs: V1Job;
  networkpolicies: V1NetworkPolicy;
  pods: V1Pod;
  secrets: V1Secret;
  services: V1Service;
};
export type Kind = keyof Objects;

/**
 * Client of the API server for one namespace, with only the verbs that the engine needs. Each rejects with EngineUnavailable
 * and the API server's message when it does not answer, refuses the credentials or is overloaded. Credentials and TLS come from
 * `@kubernetes/client-node`, whose own requests would each open a connection, and whose broken log stream would end the process.
 *
 * Rights in the namespace: create and patch (apply, merge) deployments, jobs, networkpolicies, secrets and services; list all of
 * these, pods and events; watch deployments, jobs, services, pods and events; deletecollection of deployments and jobs; delete
 * secrets; get pods/log.
 */
export type Cluster = {
  /** Server-side apply that takes over every field. Returns the current object. */
  apply<T extends Objects[AppliedKind]>(object: T): Promise<T>;
  /** Changes only these fields (RFC 7386). */
  merge(kind: 'deployments' | 'jobs', name: string, change: object): Promise<void>;
  /** `selector`: a label selector. Absent: all objects of Postern; for events, all warnings. */
  list<K extends Kind>(
    kind: K,
    selector?: string,
  ): Promise<{ readonly items: readonly Objects[K][]; readonly version: string }>;
  /** Streams changes since that version. Resolves when the API server or `signal` ends the stream. */
  watch<K extends Kind>(
    kind: K,
    version: string,
    signal: AbortSignal,
    onChange: (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Objects[K]) => void,
  ): Promise<void>;
  /** Deletes these objects after everything that they own. Missing objects are not an error. */
  deleteAll(kind: 'deployments' | 'jobs', selector: string): Promise<void>;
  delete(kind: 'secrets', name: string): Promise<void>;
  /**
   * Streams the output of a container, each line after its time, until the container or `signal` ends or `onChunk` resolves with
   * false. It reads no more until `onChunk` resolves. The container may have no log yet.
   */
  log(source: LogSource, onChunk: (chunk: Buffer) => Promise<boolean>, signal: AbortSignal): Promise<void>;
};

type AppliedKind = 'deployments' | 'jobs' | 'networkpolicies' | 'secrets' | 'services';

export type LogSource = {
  readonly pod: string;
  readonly container: string;
  /** Reads the log of the previous container. */
  readonly isPrevious: boolean;
  /** Start time in the API server's format, which counts whole seconds. Undefined: the start of the log. */
  readonly since: string | undefined;
  /** Number of last lines to begin with. Undefined: all. */
  readonly lastLines: number | undefined;
};

const groups: Readonly<Record<Kind, string>> = {
  deployments: 'apis/apps/v1',
  events: 'api/v1',
  jobs: 'apis/batch/v1',
  networkpolicies: 'apis/networking.k8s.io/v1',
  pods: 'api/v1',
  secrets: 'api/v1',
  services: 'api/v1',
};
const kindNames: Readonly<Record<string, AppliedKind>> = {
  Deployment: 'deployments',
  Job: 'jobs',
  NetworkPolicy: 'networkpolicies',
  Secret: 'secrets',
  Service: 'services',
};
/** Timeout for the head of a response, and again for a body that is not a stream, in ms. */
const answerMs = 30_000;
/** An idle connection is probed after this time, in ms. */
const probeMs = 30_000;
/** These statuses say nothing about the request: unauthorized, forbidden, conflict, too many requests. */
const passing = new Set([401, 403, 404, 409, 429]);
/** Fields that client-node types as Date. */
const times = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'eventTime',
  'finishedAt',
  'lastTimestamp',
  'startedAt',
]);

type Asked = {
  readonly method?: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
  readonly type?: string;
  readonly signal?: AbortSignal;
};

/** Loads the client. Rejects when there are no usable credentials; the API server may be unavailable. */
export async function openCluster({
  namespace,
  kubeconfig,
}: {
  readonly namespace: string;
  /** Path of a file. Null: the service account of this pod. */
  readonly kubeconfig: string | null;
}): Promise<Cluster> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  if (kubeconfig === null) config.loadFromCluster();
  else config.loadFromFile(kubeconfig);
  const server = new URL(config.getCurrentCluster()?.server ?? 'https://');
  const module = server.protocol === 'http:' ? http : https;
  const { ca, cert, key, passphrase, rejectUnauthorized, servername } = await credentials();
  const tls = { ca, cert, key, passphrase, rejectUnauthorized, servername };
  const given = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
  const agent = new module.Agent({ keepAlive: true, ...given });

  /** Current credentials: tokens are replaced before they expire. */
  async function credentials(): Promise<RequestOptions> {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    return options;
  }

  function urlOf(kind: Kind, rest: readonly string[], query: Asked['query'] = {}): URL {
    const path = [groups[kind], 'namespaces', namespace, kind, ...rest.map(encodeURIComponent)];
    const url = new URL(path.join('/'), `${server.href.replace(/\/$/, '')}/`);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, value);
    return url;
  }

  async function ask(url: URL, { method = 'GET', body, type, signal }: Asked = {}): Promise<IncomingMessage> {
    const late = AbortSignal.timeout(answerMs);
    const content = body && JSON.stringify(body, named);
    const headers = {
      // client-node sets a plain object.
      ...((await credentials()).headers as http.OutgoingHttpHeaders | undefined),
      // Without its length, Node sends the body of a DELETE as if it were the next request.
      ...(content && {
        'content-type': type ?? 'application/json',
        'content-length': Buffer.byteLength(content),
      }),
    };
    const request = module.request(url, { agent, method, headers });
    const end = () => request.destroy();
    for (const one of [late, signal]) one?.addEventListener('abort', end, { once: true });
    request.once('close', () => signal?.removeEventListener('abort', end));
    if (signal?.aborted === true) end();
    // Later errors belong to the response.
    request.on('error', () => undefined);
    request.setSocketKeepAlive(true, probeMs);
    request.end(content);
    let response: IncomingMessage;
    try {
      // The types of events do not name their arguments.
      [response] = (await once(request, 'response')) as [IncomingMessage];
    } catch (error) {
      throw unreachable(error, late.aborted);
    } finally {
      late.removeEventListener('abort', end);
    }
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return response;
    const message = messageOf(await bodyOf(response).catch(() => '')) ?? `status ${status}`;
    if (status >= 500 || passing.has(status)) throw new EngineUnavailable(`Kubernetes answers: ${message}`);
    throw new Error(`Kubernetes refuses ${method} ${url.pathname}: ${message}`);
  }

  async function read<T>(response: IncomingMessage): Promise<T> {
    const body = await bodyOf(response);
    try {
      // The API server sends the requested kind.
      return JSON.parse(body, withTimes) as T;
    } catch (error) {
      throw unreachable(error, false);
    }
  }

  function selectorOf(kind: Kind, selector: string | undefined) {
    if (kind === 'events') return { fieldSelector: 'type=Warning' };
    return { labelSelector: selector ?? `${labels.managed}=${manager}` };
  }

  return {
    async apply(object) {
      const kind = kindNames[object.kind ?? ''];
      if (kind === undefined) throw new Error(`The engine applies no ${object.kind}.`);
      const query = { fieldManager: manager, force: 'true' };
      const response = await ask(urlOf(kind, [object.metadata?.name ?? ''], query), {
        method: 'PATCH',
        body: object,
        type: 'application/apply-patch+yaml',
      });
      return await read(response);
    },
    async merge(kind, name, change) {
      const options = { method: 'PATCH', body: change, type: 'application/merge-patch+json' };
      await read(await ask(urlOf(kind, [name], { fieldManager: manager }), options));
    },
    async list(kind, selector) {
      const found = await read<{ items: Objects[typeof kind][]; metadata: { resourceVersion: string } }>(
        await ask(urlOf(kind, [], selectorOf(kind, selector))),
      );
      return { items: found.items, version: found.metadata.resourceVersion };
    },
    async watch(kind, version, signal, onChange) {
      const query = { ...selectorOf(kind, undefined), watch: 'true', resourceVersion: version };
      const response = await ask(urlOf(kind, [], query), { signal });
      await readStream(response, signal, async () => {
        for await (const line of createInterface({ input: response })) {
          // One change in each line.
          const { type, object } = JSON.parse(line, withTimes) as {
            type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'ERROR';
            object: Objects[typeof kind];
          };
          // For example, the version is too old.
          if (type === 'ERROR') throw new EngineUnavailable(`Kubernetes ends a watch: ${messageOf(line)}`);
          onChange(type, object);
        }
      });
    },
    async deleteAll(kind, selector) {
      const body = { propagationPolicy: 'Foreground' };
      const url = urlOf(kind, [], { labelSelector: selector });
      await read(await ask(url, { method: 'DELETE', body }));
    },
    async delete(kind, name) {
      await read(await ask(urlOf(kind, [name]), { method: 'DELETE' }));
    },
    async log({ pod, container, isPrevious, since, lastLines }, onChunk, signal) {
      const query = {
        container,
        follow: String(!isPrevious),
        previous: String(isPrevious),
        timestamps: 'true',
        sinceTime: since,
        tailLines: lastLines?.toString(),
      };
      const response = await ask(urlOf('pods', [pod, 'log'], query), { signal }).catch(orNone);
      if (response === undefined) return;
      await readStream(response, signal, async () => {
        for await (const chunk of response) if (!(await onChunk(chunk as Buffer))) return;
      });
    },
  };
}

/** Reads the whole body. A server that stops sending counts as unavailable. */
async function bodyOf(response: IncomingMessage): Promise<string> {
  const late = AbortSignal.timeout(answerMs);
  const end = () => response.destroy();
  late.addEventListener('abort', end, { once: true });
  try {
    return await text(response);
  } catch (error) {
    throw unreachable(error, late.aborted);
  } finally {
    late.removeEventListener('abort', end);
  }
}

async function readStream(
  response: IncomingMessage,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!signal.aborted) throw error instanceof EngineUnavailable ? error : unreachable(error, false);
  } finally {
    response.destroy();
  }
}

function orNone(error: unknown): undefined {
  if (error instanceof EngineUnavailable) throw error;
}

function unreachable(error: unknown, isLate: boolean): EngineUnavailable {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = isLate ? `no answer within ${answerMs / 1_000} s` : (code ?? message);
  return new EngineUnavailable(`Kubernetes cannot be reached: ${why}.`, { cause: error });
}

/** Message of a Status (Kubernetes API conventions). */
function messageOf(body: string): string | undefined {
  try {
    const found = JSON.parse(body) as { message?: string; object?: { message?: string } };
    return found.message ?? found.object?.message;
  } catch {
    return undefined;
  }
}

function withTimes(key: string, value: unknown): unknown {
  return times.has(key) && typeof value === 'string' ? new Date(value) : value;
}

/** Restores the name of the one field that client-node renames: `_from` of a NetworkPolicy. */
function named(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('_from' in value)) return value;
  const { _from: from, ...rest } = value;
  return { from, ...rest };
}
