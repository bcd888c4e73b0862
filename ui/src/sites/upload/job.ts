import type { Schemas } from '../../api/contract.ts';
import type { Checked } from './precheck.ts';

/** What is to be published where. */
export type Job = {
  readonly checked: Checked;
  readonly target:
    | { readonly kind: 'new'; readonly request: Schemas['SiteCreate'] }
    | {
        readonly kind: 'replace';
        readonly siteId: string;
        /** The version that was seen live; another one is not overwritten unseen. */
        readonly digest: string | null;
        readonly spa: boolean;
      };
  /** True: the server judges everything and keeps nothing. */
  readonly isCheckOnly: boolean;
};

/** True: it goes on after a break or a reload. An archive, a page and what is only checked go in one piece, and begin anew. */
export function isResumable({ checked, isCheckOnly }: Job): boolean {
  return checked.picked.kind === 'folder' && !isCheckOnly;
}

export type Stage =
  | { readonly kind: 'reading'; readonly done: number; readonly total: number }
  | { readonly kind: 'sending'; readonly sent: number; readonly total: number }
  | {
      readonly kind: 'waiting';
      readonly seconds: number;
      readonly because: string;
      readonly sent: number;
      readonly total: number;
    }
  | { readonly kind: 'processing' };

export type Outcome = {
  readonly site: Schemas['Site'];
  /** Contents that were sent and that the server had already; null when all went as one. */
  readonly contents: { readonly sent: number; readonly had: number } | null;
  /** The name of the one page that was chosen, where it is not the name that it got. */
  readonly startPage: string | null;
};

export type Control = { readonly signal: AbortSignal; readonly tell: (stage: Stage) => void };

export function ifMatchOf({ target }: Job): string | undefined {
  return target.kind === 'replace' && target.digest !== null ? `"${target.digest}"` : undefined;
}
