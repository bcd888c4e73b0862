import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../scripts/local-servers.ts';

/** The name of the test's git servers. DNS does not know it, so a client reaches it only by its address. */
export const gitHost = 'git.example.test';

type Respond = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * A git server over https, behind a certificate of an authority made for the test. git's own http-backend answers, unless
 * `respond` does.
 */
export async function httpsGitServer(
  folder: string,
  options: { readonly authorization?: string; readonly respond?: Respond } = {},
) {
  const keys = mkdtempSync(join(tmpdir(), 'postern-git-https-'));
  const at = (name: string) => join(keys, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-x509'];
  openssl(
    'req',
    ...curve,
    '-subj',
    `/CN=${gitHost}`,
    '-addext',
    `subjectAltName=DNS:${gitHost},DNS:localhost`,
    '-keyout',
    at('key'),
    '-out',
    at('cert'),
  );
  const seen: { url: string; authorization: string | undefined }[] = [];
  let inFlight: () => void = () => undefined;
  const server = createServer(
    { key: readFileSync(at('key')), cert: readFileSync(at('cert')) },
    (request, response) => {
      const { authorization } = request.headers;
      seen.push({ url: request.url ?? '', authorization });
      inFlight();
      if (request.url?.startsWith('/moved/'))
        return void response
          .writeHead(302, { location: `https://${gitHost}:${port}/${request.url.slice(7)}` })
          .end();
      if (request.url?.startsWith('/silent/')) return;
      if (options.authorization !== undefined && authorization !== options.authorization)
        return void response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
      if (options.respond !== undefined) options.respond(request, response);
      else runBackend(folder, request, response);
    },
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    caFile: at('cert'),
    url: (path: string) => `https://${gitHost}:${port}/${path}`,
    origin: `https://${gitHost}:${port}`,
    seen,
    /** Called at each request, while git waits for its answer. */
    whileAsked(look: () => void) {
      inFlight = look;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
      rmSync(keys, { recursive: true, force: true });
    },
  };
}

/** https://git-scm.com/docs/git-http-backend, called as a CGI program (RFC 3875). */
export function runBackend(folder: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url ?? '/', 'https://localhost');
  const backend = spawn('git', ['http-backend'], {
    stdio: ['pipe', 'pipe', 'ignore'],
    env: {
      PATH: process.env['PATH'] ?? '',
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_CONFIG_COUNT: '1',
      GIT_CONFIG_KEY_0: 'safe.directory',
      GIT_CONFIG_VALUE_0: '*',
      REQUEST_METHOD: request.method ?? 'GET',
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    },
  });
  request.pipe(backend.stdin);
  const output: Buffer[] = [];
  backend.stdout.on('data', (chunk: Buffer) => output.push(chunk));
  backend.once('close', () => {
    const all = Buffer.concat(output);
    const end = all.indexOf('\r\n\r\n');
    const head = all.subarray(0, end).toString().split('\r\n');
    const headers = Object.fromEntries(head.map((line) => line.split(': ', 2) as [string, string]));
    const status = Number(headers['Status']?.slice(0, 3) ?? 200);
    delete headers['Status'];
    response.writeHead(status, headers).end(all.subarray(end + 4));
  });
}

const commitOfNothing = '1'.repeat(40);

/**
 * A server with one branch, main, that answers a fetch with `pack`. With `elsewhere` it names another address besides, where
 * the rest of the pack is said to be (`packfile-uris`, gitprotocol-v2(5)).
 */
export function hostileAnswers(pack: AsyncIterable<Buffer>, { elsewhere = false } = {}): Respond {
  const line = (text: string | Buffer) =>
    Buffer.concat([Buffer.from((text.length + 4).toString(16).padStart(4, '0')), Buffer.from(text)]);
  const end = '0000';
  return (request, response) => {
    if (request.method === 'GET') {
      const said = [
        'version 2\n',
        'ls-refs\n',
        'fetch=shallow filter packfile-uris\n',
        'object-format=sha1\n',
      ];
      response.setHeader('content-type', 'application/x-git-upload-pack-advertisement');
      return void response.end(Buffer.concat([...said.map(line), Buffer.from(end)]));
    }
    response.setHeader('content-type', 'application/x-git-upload-pack-result');
    let asked = '';
    request.on('data', (chunk: Buffer) => (asked += chunk.toString('latin1')));
    request.on('end', () => {
      if (asked.includes('command=ls-refs')) {
        response.write(line(`${commitOfNothing} refs/heads/main\n`));
        return void response.end(end);
      }
      for (const section of ['shallow-info\n', `shallow ${commitOfNothing}\n`]) response.write(line(section));
      response.write('0001');
      if (elsewhere) {
        response.write(line('packfile-uris\n'));
        const at = `https://localhost:${request.socket.localPort}/elsewhere.pack`;
        response.write(line(`${'2'.repeat(40)} ${at}\n`));
        response.write('0001');
      }
      response.write(line('packfile\n'));
      async function* packets() {
        for await (const bytes of pack) yield line(Buffer.concat([Buffer.from([1]), bytes]));
        yield Buffer.from(end);
      }
      Readable.from(packets()).pipe(response);
    });
  };
}

export const isSshServerMissing = !existsSync('/usr/sbin/sshd') || process.getuid?.() !== 0;

/** A git server over ssh: OpenSSH with its own key, which accepts one user key. */
export async function sshGitServer() {
  const folder = mkdtempSync(join(tmpdir(), 'postern-git-ssh-'));
  const at = (name: string) => join(folder, name);
  const keygen = (name: string) =>
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)], { stdio: 'ignore' });
  keygen('host');
  keygen('user');
  keygen('stranger');
  mkdirSync('/run/sshd', { recursive: true });
  const port = await freePort();
  writeFileSync(
    at('config'),
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${at('host')}`,
      `AuthorizedKeysFile ${at('user.pub')}`,
      'StrictModes no',
      'UsePAM no',
      // As git hosts do: version 2 of the protocol, in which a client may ask for any object.
      'AcceptEnv GIT_PROTOCOL',
      'PasswordAuthentication no',
      'PermitRootLogin prohibit-password',
      `PidFile ${at('pid')}`,
      '',
    ].join('\n'),
  );
  const server = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', at('config')], { stdio: 'ignore' });
  while (!(await answers(port))) await wait(20);
  return {
    url: (path: string) => `ssh://root@${gitHost}:${port}${path}`,
    origin: `ssh://${gitHost}:${port}`,
    privateKey: readFileSync(at('user'), 'utf8'),
    otherPrivateKey: readFileSync(at('stranger'), 'utf8'),
    knownHosts: `[${gitHost}]:${port} ${readFileSync(at('host.pub'), 'utf8')}`,
    otherKnownHosts: `[${gitHost}]:${port} ${readFileSync(at('stranger.pub'), 'utf8')}`,
    async stop() {
      server.kill();
      await once(server, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(port, '127.0.0.1');
    probe.once('data', () => {
      resolve(true);
      probe.destroy();
    });
    probe.once('error', () => resolve(false));
  });
}
