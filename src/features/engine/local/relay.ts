import { type ChildProcess, spawn } from 'node:child_process';
import type fs from 'node:fs';
import type net from 'node:net';
import { enterNetwork, pipeOf } from './run-command.ts';
import { asTenant, sourceAt, tenantUser } from './tenant.ts';

/**
 * The relay of an Environment: a process in its network through which Postern reaches its services. It listens on a Unix socket
 * in a folder that only its user can open, so no other user of the machine reaches them (platform/place.ts, decision 0084).
 */
export const relaySocket = 'relay.sock';

/** Bytes of the first line: the longest address and a port. */
const maxLine = 64;
/** Time that a service has to answer after the gateway closed, or to read waiting bytes, in ms. */
const endMs = 60_000;
/** Maximum number of open connections: as many as the gateway opens to all processes. */
const maxConnections = 4_096;

/** Starts the relay in the folder of the socket. It writes to file 3 when it listens, and outlives this process. */
export function spawnRelay(
  folder: string,
  holder: number,
  env: Readonly<Record<string, string>>,
): ChildProcess {
  const node = tenantUser === null ? process.execPath : sourceAt(0);
  const program = `(${relay.toString()})(require('node:net'), require('node:fs'), '${relaySocket}', ${maxLine}, ${endMs}, ${maxConnections})`;
  const words = [
    ...enterNetwork(holder),
    node,
    '--max-old-space-size=64',
    '--input-type=commonjs',
    '-e',
    program,
  ];
  const [command = '', ...options] = asTenant(words, [process.execPath]);
  const child = spawn(command, options, {
    cwd: folder,
    env,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    detached: true,
  });
  pipeOf(child, 3);
  return child;
}

/** Runs as source text in another process, so it must not use anything from this file. */
export function relay(
  { connect, createServer }: typeof net,
  { rmSync, writeSync }: typeof fs,
  path: string,
  maxBytes: number,
  endMs: number,
  maxConnections: number,
): void {
  rmSync(path, { force: true });
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const leave = () => near.destroy();
    near.on('error', leave).once('end', leave);
    near.once('data', (first) => {
      // Postern sends the line in one write.
      const end = first.indexOf('\n');
      const [, host, port] = /^(.+):(\d+)$/.exec(first.subarray(0, Math.min(end, maxBytes)).toString()) ?? [];
      if (host === undefined) return leave();
      near.off('end', leave).pause();
      if (end + 1 < first.length) near.unshift(first.subarray(end + 1));
      const far = connect({ host, port: Number(port), noDelay: true, allowHalfOpen: true });
      // Bytes that the service already sent are still delivered.
      far.on('error', () => undefined).on('close', () => near.destroySoon());
      near.on('close', () => far.destroy());
      // The gateway closes both directions, and only a write would show that.
      near.on('end', () => setTimeout(() => far.destroy(), endMs).unref());
      // While the service does not read, the relay does not read either, and does not notice that the gateway disconnected.
      far.setTimeout(endMs, () => {
        if (far.writableNeedDrain) far.destroy();
      });
      near.pipe(far);
      far.pipe(near);
    });
  });
  // A connection that cannot be accepted, for example without free file descriptors, must not end the relay.
  server.on('error', () => undefined);
  server.maxConnections = maxConnections;
  server.listen(path, () => writeSync(3, '.'));
}
