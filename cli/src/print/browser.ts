import { spawn } from 'node:child_process';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import type { Result } from './output.ts';

export type BrowserOptions = { readonly browser?: boolean };

/** Prints the address, and opens it where a person can see the browser. */
export function opened(address: string, { browser = true }: BrowserOptions, io: Pick<Io, 'canAsk'>): Result {
  if (io.canAsk && browser) openInBrowser(address);
  return { data: { url: address }, text: `${address}\n` };
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
