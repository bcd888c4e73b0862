import type { Server } from 'node:net';

/** Resolves when the server listens. @throws what the operating system says, such as EADDRINUSE */
export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}
