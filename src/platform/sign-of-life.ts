import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

/**
 * Shows whether the process that created something in a shared folder is still running. The process listens on a socket
 * there, which the system closes when the process ends for any reason. Every process that sees the folder can check it.
 * This also works from another container, where process ids and host names are meaningless.
 */

/**
 * Listens on the socket `name` in the folder until end(), without keeping the process alive. Null where the file system
 * has no sockets.
 */
export async function showLife(folder: string, name: string): Promise<{ end(): void } | null> {
  const at = addressOf(folder, name);
  const server = createServer((asking) => asking.destroy()).listen(at.path);
  try {
    await once(server, 'listening');
  } catch {
    at.close();
    return null;
  }
  server.unref();
  return {
    end() {
      // Also removes the socket's file, by the path it was created with.
      server.close();
      at.close();
    },
  };
}

/** True when a process listens on the socket. */
export async function answers(folder: string, name: string): Promise<boolean> {
  const at = addressOf(folder, name);
  const asking = connect(at.path);
  try {
    await once(asking, 'connect');
    return true;
  } catch (error) {
    // No listener, or no such socket. Any other failure proves nothing: a process may still be running.
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'ECONNREFUSED' && code !== 'ENOENT';
  } finally {
    asking.destroy();
    at.close();
  }
}

/** Maximum length of a socket's path on macOS, in bytes; Linux accepts four more (unix(7)). */
const maxSocketPathBytes = 103;

/** The path for a socket in the folder; call close() when it is no longer needed. */
function addressOf(folder: string, name: string): { readonly path: string; close(): void } {
  const nothing = () => undefined;
  // On Windows it is a named pipe without a file; the name contains a random part.
  if (process.platform === 'win32') return { path: `\\\\.\\pipe\\postern-${name}`, close: nothing };
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= maxSocketPathBytes) return { path, close: nothing };
  if (!existsSync('/proc/self/fd'))
    throw new Error(`The path ${folder} is too long for a socket. Set DATA_DIR to a shorter path.`);
  const descriptor = openSync(folder, 'r');
  return { path: `/proc/self/fd/${descriptor}/${name}`, close: () => closeSync(descriptor) };
}
