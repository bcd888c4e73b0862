/** Text that is already HTML. Everything else is escaped on its way into a page. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | readonly Part[] | false | undefined;

/** A template whose values are escaped unless they are Html; lists are joined, false and undefined vanish. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(
    strings.reduce((text, string, at) => text + (at === 0 ? '' : print(parts[at - 1])) + string, ''),
  );
}

function print(part: Part): string {
  if (part === undefined || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(print).join('');
  return escape(String(part));
}

export function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

/** The little Markdown that descriptions use: paragraphs, `code` and **strong**. */
export function prose(text: string): Html {
  return new Html(
    text
      .split(/\n{2,}/)
      .map((paragraph) => `<p>${inline(paragraph).text}</p>`)
      .join(''),
  );
}

export function inline(text: string): Html {
  return new Html(
    escape(text)
      .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
      .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>'),
  );
}

/** Short lists of plain values on one line. */
export function compact(text: string): string {
  return text.replaceAll(
    /\[\n\s+([^[\]{}]{1,70})\n\s*\]/g,
    (_, list: string) => `[${list.replaceAll(/,\n\s+/g, ', ')}]`,
  );
}

/** JSON with its parts coloured, two spaces deep. */
export function json(value: unknown): Html {
  const text = compact(JSON.stringify(value, null, 2) ?? '');
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  let out = '';
  let from = 0;
  for (const match of text.matchAll(token)) {
    const [whole, string, colon] = match;
    out += escape(text.slice(from, match.index));
    if (string === undefined) out += `<b class="n">${escape(whole)}</b>`;
    else if (colon === undefined) out += `<b class="s">${escape(string)}</b>`;
    else out += `<b class="k">${escape(string)}</b>${colon}`;
    from = match.index + whole.length;
  }
  return new Html(out + escape(text.slice(from)));
}
