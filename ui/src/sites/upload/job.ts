import type { Schemas } from '../../api/contract.ts';
import type { Checked } from './precheck.ts';

/** What to publish, and where. */
export type Job = {
  readonly checked: Checked;
  readonly target:
    | { readonly kind: 'new'; readonly request: Schemas['SiteCreate'] }
    | {
        readonly kind: 'replace';
        readonly siteId: string;
        /** The live version that the user saw, so that the upload does not overwrite another one unseen. */
        readonly digest: string | null;
        readonly spa: boolean;
      };
  /** True: the server checks everything and keeps nothing. */
  readonly isCheckOnly: boolean;
};

/** True: it resumes after a lost connection or a reload. An archive, a page or a check is sent in one piece and starts again. */
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
  /** Warnings of a check. After a publication, the version's report has them. */
  readonly warnings: readonly Schemas['PublishedSite']['warnings'][number][];
  /** Numbers of contents that were sent and that the server already had; null for an archive. */
  readonly contents: { readonly sent: number; readonly had: number } | null;
  /** The original name of a single page, if the upload renamed it. */
  readonly startPage: string | null;
};

export type Control = { readonly signal: AbortSignal; readonly tell: (stage: Stage) => void };

export function ifMatchOf({ target }: Job): string | undefined {
  return target.kind === 'replace' && target.digest !== null ? `"${target.digest}"` : undefined;
}
