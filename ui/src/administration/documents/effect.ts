import type { DocumentApi } from './document-api.ts';
import { type Difference, sameValue } from './values.ts';

/** Whether a change of a document has the effect that it was made for. */
export type Effect = {
  /** Changed settings that people can see, with the values that they see now. */
  readonly seen: readonly (Difference & { readonly found: unknown })[];
  /** Changed settings whose effect only a trial shows. */
  readonly unseen: readonly Difference[];
};

/** Reads the values as the affected people would. */
export async function readEffect(api: DocumentApi, changed: readonly Difference[]): Promise<Effect> {
  const told = (await api.told?.()) ?? {};
  const isTold = ({ path }: Difference) => Object.hasOwn(told, path);
  return {
    seen: changed.filter(isTold).map((one) => ({ ...one, found: told[one.path] })),
    unseen: changed.filter((one) => !isTold(one)),
  };
}

export const hasFailed = ({ seen }: Effect) => seen.some(({ after, found }) => !sameValue(after, found));
