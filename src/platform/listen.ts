import type { Server } from 'node:net';

/** Resolves when the server listens. @throws the error of the operating system, such as EADDRINUSE */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}
