import type { Schemas } from '../../api/contract.ts';
import type { Site } from '../site-words.ts';

/** What every part of a site's page knows. */
export type Facts = {
  readonly site: Site;
  readonly actions: Schemas['SiteActions'];
  readonly now: number;
};

/** Changes what of a part is shown; it is kept in the address. */
export type Show = (next: Record<string, unknown>) => void;
