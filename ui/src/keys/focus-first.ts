import { type FieldErrors, fields } from './new/draft.ts';

/** Sends the focus to the first field that has a mistake, or to what the server said about the whole form. */
export function focusFirst(form: HTMLFormElement | null, found: FieldErrors): void {
  const first = fields.find((field) => found[field] !== undefined);
  const target =
    first === undefined ? '[role="alert"]' : `[data-field="${first}"] :is(input, button):enabled`;
  const element = form?.querySelector<HTMLElement>(target);
  element?.focus();
  element?.scrollIntoView({ block: 'center' });
}
