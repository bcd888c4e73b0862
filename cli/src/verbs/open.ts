import { openCaller, type CallerOptions } from '../http/call.ts';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { type BrowserOptions, opened } from '../print/browser.ts';
import type { Result } from '../print/output.ts';
import { findSite } from '../deploy/find-site.ts';
import type { Environment } from '../environments/watch.ts';

/** The address of an Environment or a site, which a browser opens when a person is there. @throws Failure */
export async function open(name: string, options: CallerOptions & BrowserOptions, io: Io): Promise<Result> {
  const { call } = await openCaller(io, options);
  const { link } = await call<Environment>('GET', `/environments/${encodeURIComponent(name)}`).catch(
    async (error: unknown) => {
      const mayBeSite =
        error instanceof Failure && (error.exitCode === 3 || error.code === 'forbidden_scope');
      if (!mayBeSite) throw error;
      return await findSite(name, call).catch((other: unknown) => {
        const isNone =
          other instanceof Failure &&
          (other.exitCode === 3 || (other.code === 'forbidden_scope' && error.exitCode === 3));
        throw isNone ? noneNamed() : other;
      });
    },
  );
  return opened(link, options, io);
}

function noneNamed(): Failure {
  return new Failure('not_found', 3, 'No Environment and no site that you can see has this name.', {
    hint: 'Names: postern env list, postern sites list',
  });
}
