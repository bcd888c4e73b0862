/** Text that is safe to put into a page unchanged. Text from a person becomes one only through the tag below. */
export type Html = { readonly html: string };

type Value = Html | string | number | readonly Value[] | false | null | undefined;

/**
 * A template tag that escapes every value which is not itself Html, so text from a person can never become markup. Lists
 * are joined; false, null and undefined become nothing.
 */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  let text = parts[0] ?? '';
  for (const [index, value] of values.entries()) text += render(value) + (parts[index + 1] ?? '');
  return { html: text };
}

function render(value: Value): string {
  if (value === false || value === null || value === undefined) return '';
  if (typeof value === 'string' || typeof value === 'number') return escape(String(value));
  return 'html' in value ? value.html : value.map(render).join('');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}
