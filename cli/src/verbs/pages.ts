import type { Io } from '../core/io.ts';
import { type BrowserOptions, opened } from '../print/browser.ts';
import type { Result } from '../print/output.ts';
import { openServer } from '../http/session.ts';

/** The page of the web app. No request is sent. @throws Failure of the code 2 */
export async function openPage(
  path: string,
  options: BrowserOptions & { readonly context?: string },
  io: Io,
): Promise<Result> {
  const { origin } = await openServer(io, options);
  return opened(origin + path, options, io);
}
