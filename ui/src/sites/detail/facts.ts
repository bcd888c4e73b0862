import type { Schemas } from '../../api/contract.ts';
import type { Site } from '../site-words.ts';

/** Facts that every part of a site's page uses. */
export type Facts = {
  readonly site: Site;
  readonly actions: Schemas['SiteActions'];
  readonly now: number;
};

/** Changes the filters of a part, which are kept in the address. */
export type Show = (next: Record<string, unknown>) => void;
