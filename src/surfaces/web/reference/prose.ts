import { escape, type Html } from '../html.ts';

/** The little Markdown that descriptions use: paragraphs, `code` and **strong**. */
export function prose(text: string): Html {
  const paragraphs = text.split(/\n{2,}/).map((paragraph) => `<p>${inline(paragraph).html}</p>`);
  return { html: paragraphs.join('') };
}

export function inline(text: string): Html {
  const words = escape(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
  return { html: words };
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
  return { html: out + escape(text.slice(from)) };
}
