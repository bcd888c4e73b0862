import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../../scripts/local-servers.ts';

/** deploy/nginx/postern.conf by the real program, with addresses, certificates and folders of the test's own. */
export type Nginx = {
  readonly tlsPort: number;
  readonly plainPort: number;
  readonly ca: string;
  /** What it logged, of both servers. */
  log(): string;
  /** What it says of processes that did not answer. */
  errors(): string;
  /** Where it would put bodies that it does not pass on at once. */
  readonly temporary: string;
  stop(): Promise<void>;
};

const root = join(import.meta.dirname, '../..');

/** `addresses`: what stands in the file, and what is meant here. */
export async function startNginx(
  program: string,
  home: string,
  addresses: Readonly<Record<string, string>>,
): Promise<Nginx> {
  const [tlsPort, plainPort] = [await freePort(), await freePort()];
  const temporary = join(home, 'temporary');
  for (const path of [home, temporary]) mkdirSync(path, { recursive: true });
  makeCertificates(home);
  const replaced = {
    ...addresses,
    'listen 443': `listen 127.0.0.1:${tlsPort}`,
    'listen 80': `listen 127.0.0.1:${plainPort}`,
    '/etc/ssl/postern': home,
    '/var/log/nginx': home,
  };
  let conf = readFileSync(join(root, 'deploy/nginx/postern.conf'), 'utf8').replaceAll(
    /^.*listen \[::\].*\n/gm,
    '',
  );
  for (const [from, to] of Object.entries(replaced)) {
    if (!conf.includes(from)) throw new Error(`deploy/nginx/postern.conf does not mention ${from}.`);
    conf = conf.replaceAll(from, to);
  }
  writeFileSync(join(home, 'postern.conf'), conf);
  const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(temporary, name)};`,
  );
  const main = `daemon off; worker_processes 1; pid ${join(home, 'pid')}; error_log ${join(home, 'error.log')};
${process.getuid?.() === 0 ? 'user root;' : ''} events { worker_connections 512; }
http { ${folders.join(' ')} access_log off; include ${join(home, 'postern.conf')}; }`;
  writeFileSync(join(home, 'nginx.conf'), main);
  const args = ['-p', home, '-c', join(home, 'nginx.conf'), '-e', join(home, 'error.log')];
  execFileSync(program, [...args, '-t'], { stdio: 'pipe' });
  const child = spawn(program, args, { stdio: 'inherit' });
  await untilListening(child, tlsPort);
  const read = (name: string) => (existsSync(join(home, name)) ? readFileSync(join(home, name), 'utf8') : '');
  return {
    tlsPort,
    plainPort,
    ca: readFileSync(join(home, 'ca.pem'), 'utf8'),
    log: () => read('postern.log') + read('postern-sites.log'),
    errors: () => read('error.log'),
    temporary,
    async stop() {
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/** An authority, and two certificates of it: one with a wildcard. */
function makeCertificates(home: string): void {
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: home, stdio: 'pipe' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-subj',
    '/CN=test',
    '-days',
    '2',
  );
  const named = {
    ui: 'DNS:postern.example.com',
    sites: 'DNS:sites.example.net,DNS:*.sites.example.net',
  };
  for (const [name, hosts] of Object.entries(named)) {
    writeFileSync(join(home, `${name}.ext`), `subjectAltName=${hosts}\n`);
    openssl('req', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', `${name}.ext`];
    openssl('x509', '-req', '-in', `${name}.csr`, ...signing, '-out', `${name}.pem`, '-days', '2');
  }
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  while (child.exitCode === null) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await wait(20);
  }
  throw new Error('nginx ended before it listened; its message is above.');
}
