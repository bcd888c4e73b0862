import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../scripts/local-servers.ts';
import { serverCore } from './load.ts';

/**
 * nginx (Debian) on one core: one worker, sendfile, no access log. The tuned variant keeps files open (`open_file_cache`,
 * which is off by default), and notices a changed file after a minute.
 */
export async function startNginx(
  files: Readonly<Record<string, Buffer>>,
  more: { readonly upstreams?: string; readonly locations?: string; readonly keepsOpen?: boolean } = {},
): Promise<{ address: string; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-nginx-'));
  const port = await freePort();
  mkdirSync(join(folder, 'root'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, 'root', name), content);
  const config = join(folder, 'nginx.conf');
  writeFileSync(
    config,
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log crit; user root;
events { worker_connections 1024; }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; etag on;
  types { text/html html; }
  ${more.keepsOpen === false ? '' : 'open_file_cache max=1000 inactive=60s; open_file_cache_valid 60s;'}
  client_body_temp_path ${folder}/a; proxy_temp_path ${folder}/b; fastcgi_temp_path ${folder}/c;
  uwsgi_temp_path ${folder}/d; scgi_temp_path ${folder}/e;
  ${more.upstreams ?? ''}
  server { listen 127.0.0.1:${port}; root ${folder}/root;
    ${more.locations ?? ''}
  }
}`,
  );
  const server = spawn('taskset', ['-c', serverCore, 'nginx', '-c', config, '-p', folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  for (let tries = 0; !(await isOpen(port)); tries++) {
    if (tries > 100 || server.exitCode !== null) throw new Error('nginx did not start.');
    await wait(50);
  }
  return {
    address: `http://127.0.0.1:${port}`,
    async stop() {
      server.kill('SIGQUIT');
      await once(server, 'exit');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Sends a check (auth_request) to 127.0.0.1:`port`, over connections that stay open, before each request. `upstream`: what answers it then. */
export function checkedBy(
  port: number,
  upstream?: number,
): { readonly upstreams: string; readonly locations: string } {
  const kept = 'proxy_http_version 1.1; proxy_set_header Connection "";';
  // Streams what a slow reader has not taken: by default nginx writes it to a file.
  const passed = `proxy_pass http://process; ${kept} proxy_set_header Host $host; proxy_max_temp_file_size 0;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;`;
  const process =
    upstream === undefined ? '' : `upstream process { server 127.0.0.1:${upstream}; keepalive 64; }`;
  return {
    upstreams: `upstream check { server 127.0.0.1:${port}; keepalive 64; } ${process}`,
    locations: `location / { auth_request /check; ${upstream === undefined ? '' : passed} }
      location = /check { internal; proxy_pass http://check; ${kept}
        proxy_pass_request_body off; proxy_set_header Content-Length ""; }`,
  };
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const open = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return open;
}
