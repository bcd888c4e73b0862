import type { ReactNode } from 'react';
import type { Section } from './fields.ts';
import type { Tree } from './values.ts';

/** A version of a configuration document, and functions to change it. Each document's page implements them. */
export type Version = {
  readonly version: number;
  readonly changedAt: string | null;
  readonly changedBy: string | null;
  readonly value: Tree;
};
export type Current = Version & { readonly etag: string };

export type DocumentApi = {
  readonly name: 'policy' | 'access' | 'sites' | 'environments' | 'mcp' | 'models';
  read(signal?: AbortSignal): Promise<Current>;
  /** Changes nothing and shows what would happen. */
  tryOut(next: Tree, etag: string): Promise<ReactNode>;
  write(next: Tree, etag: string): Promise<Current>;
  history(page: number, signal?: AbortSignal): Promise<{ items: Version[]; pages: number }>;
  revert(version: number, etag: string): Promise<Current>;
  /** The values that affected people see now, by the paths of the settings. */
  readonly told?: () => Promise<Readonly<Record<string, unknown>>>;
  /** A task that a change affects, as an instruction to the administrator. */
  readonly trial: string;
};

export type DocumentProps = { readonly api: DocumentApi; readonly sections: readonly Section[] };
