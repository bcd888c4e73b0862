import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Failure } from './failure.ts';

/** A port of the loopback address to which a browser returns the answer of a sign-in. */
export type RedirectReceiver = {
  readonly redirectUri: string;
  /** The query of the first request that has the state; closes the port. */
  answer(): Promise<URLSearchParams>;
};

export async function redirectReceiver(state: string): Promise<RedirectReceiver> {
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>();
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '', 'http://127.0.0.1');
    const isAnswer = url?.pathname === '/callback' && url.searchParams.get('state') === state;
    response.writeHead(isAnswer ? 200 : 400, {
      'content-type': 'text/plain',
      'cache-control': 'no-store',
      connection: 'close',
    });
    response.end(isAnswer ? 'You can close this page.' : 'This is not the answer to the sign-in.');
    if (isAnswer) resolve(url.searchParams);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The loopback address has no port.');
  return {
    redirectUri: `http://127.0.0.1:${address.port}/callback`,
    async answer() {
      const query = await promise;
      server.close();
      return query;
    },
  };
}

/**
 * The page is also printed, so a machine without a browser is no failure. The address may come from a server.
 * @throws Failure of the code 1 when it is none of the web: the system would open it with another program
 */
export function openInBrowser(address: string): void {
  if (!['https:', 'http:'].includes(URL.parse(address)?.protocol ?? ''))
    throw new Failure('failed', 1, `The server sent an address that is no page: ${JSON.stringify(address)}`);
  const [program = '', ...args] =
    process.platform === 'darwin'
      ? ['open']
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler']
        : ['xdg-open'];
  const child = spawn(program, [...args, address], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
}
