import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { request as requestWithTls } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';

/** The cluster that cluster.sh started, from inside its namespaces. */
const root = join(import.meta.dirname, '../..');
export const state = process.env['CLUSTER_STATE'] ?? '';
if (state === '') throw new Error('This suite needs its own cluster: npm run test:cluster');

/** The address of the node, where the reverse proxy listens. */
export const nodeAddress = '10.77.0.1';
export const publicUrl = 'https://postern.example.com';

const execute = promisify(execFile);

/** What the program printed. @throws with its words when it fails */
export async function run(program: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await execute(program, args, { cwd: root, maxBuffer: 1 << 26 });
  return stdout.trim();
}

export const kubectl = (...args: readonly string[]) => run('kubectl', '--namespace=postern', ...args);
export const helm = (...args: readonly string[]) => run('helm', '--namespace=postern', ...args);

export async function serviceAddress(name: string): Promise<string> {
  return await kubectl('get', 'service', name, '--output=jsonpath={.spec.clusterIP}');
}

/**
 * An ingress controller of a few lines: nginx in front of the pods that Kubernetes says are ready, with TLS, the Host header
 * unchanged, the client's address forwarded, and its default of a second try of requests that can be repeated.
 */
export async function startIngress() {
  const pods = new Map<string, readonly string[]>([
    ['postern-web', []],
    ['postern-gateway', []],
  ]);
  let nginx: ChildProcess | undefined;
  let watching: ChildProcess | undefined;
  let isOver = false;

  async function watchPods(): Promise<void> {
    const service = '{{index .metadata.labels "kubernetes.io/service-name"}}';
    const ready = '{{range .endpoints}}{{if .conditions.ready}} {{index .addresses 0}}{{end}}{{end}}';
    const output = `--output=go-template=${service}${ready}{{"\\n"}}`;
    while (!isOver) {
      watching = spawn('kubectl', ['--namespace=postern', 'get', 'endpointslices', '--watch', output], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      if (watching.stdout === null) throw new Error('kubectl has no output.');
      for await (const line of createInterface({ input: watching.stdout })) {
        const [name = '', ...addresses] = line.split(' ');
        if (!pods.has(name)) continue;
        pods.set(name, addresses);
        if ([...pods.values()].every(({ length }) => length > 0)) configure();
      }
      // The API server is unavailable.
      await wait(500);
    }
  }

  function configure(): void {
    const file = join(state, 'nginx.conf');
    writeFileSync(file, nginxSettings(pods));
    if (nginx !== undefined) nginx.kill('SIGHUP');
    else nginx = spawn('nginx', ['-c', file, '-e', `${state}/log/nginx.log`], { stdio: 'inherit' });
  }

  const ended = watchPods();
  while (!(await isListening(nodeAddress, 443))) await wait(50);
  return {
    async stop() {
      isOver = true;
      watching?.kill();
      await ended;
      nginx?.kill('SIGTERM');
    },
  };
}

function nginxSettings(pods: ReadonlyMap<string, readonly string[]>): string {
  const host = (name: string, service: string, port: number) => `
  upstream ${service} { ${(pods.get(service) ?? []).map((pod) => `server ${pod}:${port} max_fails=0;`).join(' ')} }
  server {
    listen ${nodeAddress}:443 ssl;
    server_name ${name};
    ssl_certificate ${state}/pki/edge.crt;
    ssl_certificate_key ${state}/pki/edge.key;
    client_max_body_size 200m;
    location / {
      proxy_pass http://${service};
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto https;
    }
  }`;
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${state}/nginx-${name};`,
  );
  return `daemon off; pid ${state}/nginx.pid; error_log ${state}/log/nginx.log; events {}
http {
  access_log off; ${folders.join(' ')}
  ${host('postern.example.com', 'postern-web', 3000)}
  ${host('*.sites.example.net', 'postern-gateway', 3001)}
}
`;
}

function isListening(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/**
 * The status of the site's start page through the Service, without anything that tries again. Each visit comes from a port that
 * no visit before it had. For a port that is used again, the node may still know the pod of the earlier connection, and would
 * send the new one to that pod, though it is gone: clients with addresses of their own never meet this.
 */
export async function throughService(address: string, host: string): Promise<number> {
  for (;;) {
    localPort = localPort === lastPort ? firstPort : localPort + 1;
    const options = { host: address, headers: { host }, agent: false, timeout: 60_000, localPort };
    try {
      return await statusOf(request(options));
    } catch (error) {
      // A program of the node listens there.
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

/** Below the ports that the kernel gives to other connections. */
const [firstPort, lastPort] = [1_025, 32_767];
let localPort = firstPort;

/** The same through the reverse proxy. */
export function throughIngress(host: string): Promise<number> {
  const options = { host: nodeAddress, servername: host, headers: { host }, agent: false, timeout: 60_000 };
  return statusOf(requestWithTls(options));
}

function statusOf(asked: ReturnType<typeof request>): Promise<number> {
  return new Promise((resolve, reject) => {
    asked.once('response', (answer) => {
      answer.resume();
      answer.once('end', () => resolve(answer.statusCode ?? 0)).once('error', reject);
    });
    asked.once('timeout', () => asked.destroy(new Error('No answer within a minute.')));
    asked.once('error', reject);
    asked.end();
  });
}

/** Kills the program of a pod, which gets no signal it could handle. */
export async function killProgram(pod: string): Promise<void> {
  const uid = await kubectl('get', 'pod', pod, '--output=jsonpath={.metadata.uid}');
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isProgramOf(uid, name));
  if (pids.length === 0) throw new Error(`No program of the pod ${pod} runs.`);
  for (const pid of pids) process.kill(Number(pid), 'SIGKILL');
}

function isProgramOf(uid: string, pid: string): boolean {
  try {
    const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
    return groups.includes(`pod${uid}`) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('node\0');
  } catch {
    // It ended meanwhile.
    return false;
  }
}

/** Kills a program of the node or of the control plane; cluster.sh starts it again. */
export function killNodeProgram(name: string): void {
  process.kill(Number(readFileSync(join(state, 'run', `${name}.pid`), 'utf8')), 'SIGKILL');
}

/** How often the kubelet of now found the least probed pod of the product ready. */
export async function leastProbed(): Promise<number> {
  const metrics = await kubectl('get', '--raw=/api/v1/nodes/node-1/proxy/metrics/probes').catch(() => '');
  const probed = metrics
    .split('\n')
    .filter((line) =>
      /^prober_probe_total\{.*namespace="postern".*probe_type="Readiness",result="successful"/.test(line),
    )
    .map((line) => Number(line.split(' ').at(-1)));
  const pods = (await kubectl('get', 'pods', '--output=name')).split('\n');
  return probed.length < pods.length ? 0 : Math.min(...probed);
}

/** Every object of the release, of whatever kind, as `kind/name`. */
export async function objectsOf(release: string): Promise<string[]> {
  const kinds = await run('kubectl', 'api-resources', '--namespaced', '--verbs=list', '--output=name');
  const listed = kinds.split('\n').filter((kind) => !kind.startsWith('events'));
  const found = await kubectl(
    'get',
    listed.join(','),
    `--selector=app.kubernetes.io/instance=${release}`,
    '--output=name',
    '--ignore-not-found',
  );
  return found.split('\n').filter((line) => line !== '');
}

export function tagImage(from: string, to: string): void {
  const socket = join(state, 'run/containerd.sock');
  execFileSync('ctr', ['--address', socket, '--namespace', 'k8s.io', 'images', 'tag', '--force', from, to]);
}

export async function create(manifest: object): Promise<void> {
  const created = execute('kubectl', ['create', '--filename=-'], { cwd: root });
  created.child.stdin?.end(JSON.stringify(manifest));
  await created;
}
