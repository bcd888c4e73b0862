/** The period of the usage of a key, kept in the address. */
export const spans = ['hour', 'day', 'month', 'quarter'] as const;
export type Span = (typeof spans)[number];
export type KeyTab = { readonly span?: Span };

export function keyTab(raw: Record<string, unknown>): KeyTab {
  const span = spans.find((one) => one === raw['span'] && one !== 'day');
  return span === undefined ? {} : { span };
}
