/** Splits terminal output into runs of one style. Maps ANSI colours to the eight of the light and dark themes. */
export type Run = { readonly text: string; readonly color: Color | null; readonly isBold: boolean };

const colors = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;
/** Black and white are the colours of text and page, which change with the scheme: such text keeps the page's own. */
type Color = Exclude<(typeof colors)[number], 'black' | 'white'>;

type Look = Omit<Run, 'text'>;
const plain: Look = { color: null, isBold: false };

// Control characters are what this looks for: ECMA-48 control sequences and strings, such as the titles and links of xterm.
// oxlint-disable-next-line no-control-regex
const sequences = /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?/g;
// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** One line of output. Its text is never parsed as markup, and cursor movements are dropped. */
export function runsOf(line: string): readonly Run[] {
  const runs: Run[] = [];
  let look = plain;
  let from = 0;
  const add = (text: string) => {
    const shown = text.replaceAll(controls, '');
    if (shown !== '') runs.push({ text: shown, ...look });
  };
  const shown = lastDrawn(line);
  for (const { index, 0: whole, 1: parameters = '', 2: final } of shown.matchAll(sequences)) {
    add(shown.slice(from, index));
    from = index + whole.length;
    if (final === 'm' && /^[\d;:]*$/.test(parameters)) look = lookAfter(look, parameters);
  }
  add(shown.slice(from));
  return runs;
}

export function plainTextOf(line: string): string {
  // Most lines have neither colours nor other control characters.
  if (line.search(controls) < 0) return line;
  return runsOf(line)
    .map(({ text }) => text)
    .join('');
}

/** A progress bar draws over its line again and again; a terminal shows the last one. */
function lastDrawn(line: string): string {
  const drawn = line.replace(/\r+$/, '');
  return drawn.slice(drawn.lastIndexOf('\r') + 1);
}

/** ECMA-48 section 8.3.117 (SGR), with the indexed and direct colours of ISO 8613-6. */
function lookAfter(before: Look, parameters: string): Look {
  let { color, isBold } = before;
  const codes = parameters.split(/[;:]/).map(Number);
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) ({ color, isBold } = plain);
    else if (code === 1) isBold = true;
    else if (code === 22) isBold = false;
    else if (code === 39) color = null;
    else if (code >= 30 && code <= 37) color = named(code - 30);
    else if (code >= 90 && code <= 97) color = named(code - 90);
    else if (code === 38 || code === 48) {
      const isIndexed = codes[at + 1] === 5;
      const values = codes.slice(at + 2, at + (isIndexed ? 3 : 5));
      if (code === 38) color = isIndexed ? indexed(values[0] ?? 0) : nearest(values);
      at += isIndexed ? 2 : 4;
    }
  }
  return { color, isBold };
}

function named(index: number): Color | null {
  const name = colors[index] ?? 'white';
  return name === 'black' || name === 'white' ? null : name;
}

/** The 256 colours of xterm: 16 with names, a cube of 6 × 6 × 6, and 24 greys. */
function indexed(index: number): Color | null {
  if (index < 16) return named(index % 8);
  if (index >= 232) return null;
  const cube = index - 16;
  return nearest([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6]);
}

/** The named colour with the same dominant components; none for grey. */
function nearest(parts: readonly number[]): Color | null {
  const most = Math.max(...parts);
  const least = Math.min(...parts);
  if (parts.length < 3 || most - least < most / 4) return null;
  const [red, green, blue] = parts.map((part) => (part - least > (most - least) / 2 ? 1 : 0));
  return named((red ?? 0) + 2 * (green ?? 0) + 4 * (blue ?? 0));
}
