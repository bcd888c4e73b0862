/** Text that is safe to put into a page as it is. Made only by the tag below. */
export type Html = { readonly html: string };

type Value = Html | readonly Html[] | string | number | null | undefined;

/** A template tag that escapes every value which is not itself Html: text of a person can never become markup. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  let text = parts[0] ?? '';
  for (const [index, value] of values.entries()) text += render(value) + (parts[index + 1] ?? '');
  return { html: text };
}

function render(value: Value): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string' || typeof value === 'number') return escape(String(value));
  if ('html' in value) return value.html;
  return value.map((part) => part.html).join('');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}
