import type { DocumentApi } from './document-api.ts';
import { type Difference, sameValue } from './values.ts';

/** Whether a change of a document has the effect that it was made for. */
export type Effect = {
  /** Changed settings that people are told of, with what they are told now. */
  readonly seen: readonly (Difference & { readonly found: unknown })[];
  /** Changed settings whose effect only a try shows. */
  readonly unseen: readonly Difference[];
};

/** Reads what people are told, as the people who are affected would. */
export async function readEffect(api: DocumentApi, changed: readonly Difference[]): Promise<Effect> {
  const told = (await api.told?.()) ?? {};
  const isTold = ({ path }: Difference) => Object.hasOwn(told, path);
  return {
    seen: changed.filter(isTold).map((one) => ({ ...one, found: told[one.path] })),
    unseen: changed.filter((one) => !isTold(one)),
  };
}

export const hasFailed = ({ seen }: Effect) => seen.some(({ after, found }) => !sameValue(after, found));
