import type { Call } from '../http/call.ts';
import { Failure, wrongUsage } from '../core/failure.ts';

export type Site = {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly link: string;
  readonly visibility: string;
  readonly expiresAt: string | null;
  readonly version: { readonly number: number } | null;
};

/** By its id, or by the name of one of the caller's own sites. @throws Failure */
export async function findSite(idOrName: string, call: Call): Promise<Site> {
  try {
    return await call<Site>('GET', `/sites/${encodeURIComponent(idOrName)}`);
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode !== 3) throw error;
    const query = new URLSearchParams({ mine: 'true', limit: '100', search: idOrName });
    const own = await call<Site[]>('GET', `/sites?${query.toString()}`);
    const [site, ...others] = own.filter(({ name }) => name === idOrName);
    if (site === undefined) throw error;
    if (others.length > 0)
      throw wrongUsage('Several of your sites have this name.', 'Name the id: --site ID');
    return site;
  }
}
