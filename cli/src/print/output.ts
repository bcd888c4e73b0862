import { fewColumns, inWords, labelOf } from './for-people.ts';
import { type ExitCode, type Failure, wrongUsage } from '../core/failure.ts';
import { problemText } from '../core/problem.ts';
import type { Pagination } from '../http/send.ts';

/** What a verb has to print. */
export type Result = {
  readonly data: unknown;
  /** Fields of a list that are printed when the person names none; undefined = those of its first item. */
  readonly columns?: readonly string[] | undefined;
  /** Printed instead of `data`, unless JSON or fields are asked for, such as the rows of a wrapped list. */
  readonly shown?: unknown;
  /** Printed instead of `shown` on a terminal. */
  readonly people?: unknown;
  readonly pagination?: Pagination | undefined;
  readonly etag?: string | undefined;
  /** Printed instead of `data`, unless JSON or fields are asked for. */
  readonly text?: string;
  /** Printed, and yet the answer is no. Default: 0. */
  readonly exitCode?: ExitCode;
  /** A line for the person, such as that nothing was sent. */
  readonly hint?: string;
  /** A result that is a failure too, such as keys that a scan found. */
  readonly failure?: Failure | undefined;
  /** Printed as it arrives, instead of `data`. */
  readonly stream?: AsyncIterable<Uint8Array> | undefined;
  /** Results that come one after the other, printed instead of `data`; each is a separate envelope. A failure does not end the output. */
  readonly items?: AsyncIterable<Result | Failure>;
};

/** How it is printed. */
export type Form = {
  readonly isJson: boolean;
  /** Fields to print, in this order; undefined = those of the verb. */
  readonly fields: readonly string[] | undefined;
  /** Characters in a line of the terminal; null = piped, so nothing is aligned or shortened. */
  readonly columns: number | null;
  /** Only on a terminal, and not with NO_COLOR. */
  readonly isColored: boolean;
  /** Unix milliseconds, for times as distances. */
  readonly now: number;
};

/** The result for stdout. */
export function resultText(result: Result, form: Form): string {
  const { data, text, shown = data, people, columns, pagination, etag, failure } = result;
  if (text !== undefined && !form.isJson && form.fields === undefined) return text;
  if (!form.isJson) {
    if (form.fields !== undefined) return asText(data, form, columns);
    if (form.columns === null) return asText(shown, form, columns);
    return people === undefined
      ? asText(shown, form, columns && fewColumns(columns))
      : asText(people, form, undefined);
  }
  const error = failure === undefined ? null : errorOf(failure);
  return json({ ok: error === null, data: selected(data, form.fields), error, pagination, etag });
}

/** What a person may want to know besides the result, for stderr. */
export function hintsOf({ pagination, hint }: Result): string {
  const { current, total, nextCursor } = pagination ?? {};
  const isPart =
    (current !== undefined && total !== undefined && current < total) || typeof nextCursor === 'string';
  return [hint, isPart && 'There are more: --paginate prints every page.']
    .filter(Boolean)
    .map((line) => `${line}\n`)
    .join('');
}

/** https://no-color.org; `dumb` is a terminal without colours. */
export function isColored(isTerminal: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  return isTerminal && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}

/** SGR parameters of ECMA-48. */
const styles = { bold: [1, 22], red: [31, 39] } as const;

function styled(text: string, style: keyof typeof styles, isOn: boolean): string {
  const [start, end] = styles[style];
  return isOn ? `\u001b[${start}m${text}\u001b[${end}m` : text;
}

export function failureText(failure: Failure, isJson: boolean, hasColor = false): string {
  const { code, message, hint, requestId, details } = failure;
  if (isJson) return json({ ok: false, data: null, error: errorOf(failure) });
  const lines = [
    `postern: ${message} (${code})`,
    hint && `  ${hint}`,
    ...detailLines(details),
    requestId && `  Request: ${requestId}`,
  ];
  return lines
    .filter(Boolean)
    .map((line, at) => `${styled(printable(String(line)), 'red', hasColor && at === 0)}\n`)
    .join('');
}

function errorOf({ code, message, hint, requestId, details }: Failure) {
  return { code, message, hint, requestId, ...(details ? { details } : {}) };
}

/** A line for each refused file or each problem of postern.yaml; anything else as JSON. */
function detailLines(details: unknown): string[] {
  if (details === null || details === undefined) return [];
  const problems = typeof details === 'object' && 'problems' in details ? details.problems : undefined;
  if (Array.isArray(problems)) return problems.map((one) => `  ${problemText(one)}`);
  const files = typeof details === 'object' && 'files' in details ? details.files : undefined;
  if (!Array.isArray(files)) return [`  ${JSON.stringify(details)}`];
  return files.map((file) => `  ${cell(valueAt(file, 'path'))}: ${cell(valueAt(file, 'problem'))}`);
}

function json(value: unknown): string {
  // JSON leaves some control characters as they are.
  return `${JSON.stringify(value).replaceAll(/\p{Cc}/gu, escaped)}\n`;
}

/** `--fields` as a list, checked before the request is sent. @throws Failure of the code 2 */
export function fieldsFrom(
  text: string | undefined,
  known: readonly string[] | undefined,
): string[] | undefined {
  const asked = text?.split(',').map((field) => field.trim());
  if (asked === undefined || known === undefined) return asked;
  const unknown = asked.filter((field) => !known.includes(field.split('.')[0] ?? ''));
  if (unknown.length > 0)
    throw wrongUsage(
      '--fields names a field that the result does not have.',
      `The fields are ${known.join(', ')}.`,
    );
  return asked;
}

function selected(data: unknown, fields: readonly string[] | undefined): unknown {
  if (fields === undefined) return data;
  if (Array.isArray(data)) return data.map((item) => selected(item, fields));
  return Object.fromEntries(fields.map((field) => [field, valueAt(data, field) ?? null]));
}

/** The data as lines. A list has a line for each item; one thing has a line for each field. */
function asText(data: unknown, form: Form, usual: readonly string[] | undefined): string {
  const { fields, columns } = form;
  if (data === null || data === undefined) return '';
  if (Array.isArray(data)) return listText(data, fields ?? usual ?? fieldsOf(data), form);
  if (typeof data !== 'object') return `${cell(data)}\n`;
  if (fields !== undefined) return rowText(data, fields);
  const names = Object.keys(data);
  if (columns === null) return names.map((name) => `${name}\t${cell(valueAt(data, name))}\n`).join('');
  const lines = names.map((name) => [labelOf(name), cell(inWords(valueAt(data, name), form.now))] as const);
  const full = lines.filter(([, text]) => text !== '');
  const width = Math.max(0, ...full.map(([label]) => label.length));
  return full.map(([label, text]) => `${label.padEnd(width)}  ${text}\n`).join('');
}

function fieldsOf(items: readonly unknown[]): string[] {
  const [first] = items;
  return typeof first === 'object' && first !== null ? Object.keys(first) : [];
}

function listText(
  items: readonly unknown[],
  fields: readonly string[],
  { columns, isColored: hasColor, fields: asked, now }: Form,
): string {
  // What a person asked for by name, and what goes into a pipe, is exact.
  const isExact = columns === null || asked !== undefined;
  const rows = items.map((item) =>
    typeof item === 'object' && item !== null
      ? fields.map((field) => cell(isExact ? valueAt(item, field) : inWords(valueAt(item, field), now)))
      : [cell(item)],
  );
  if (columns === null) return rows.map((row) => `${row.join('\t')}\n`).join('');
  if (rows.length === 0) return '';
  const titles = fields.map((field) => (isExact ? field : labelOf(field)).toUpperCase());
  const table = [titles, ...rows];
  const widths = fields.map((_, at) => Math.max(...table.map((row) => row[at]?.length ?? 0)));
  return table
    .map((row, index) => {
      const line = row
        .map((text, at) => text.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd();
      const short = line.length > columns ? `${line.slice(0, columns - 1)}…` : line;
      return `${styled(short, 'bold', hasColor && index === 0)}\n`;
    })
    .join('');
}

/** One line: these fields, with tabs between them. */
export function rowText(item: unknown, fields: readonly string[]): string {
  return `${fields.map((field) => cell(valueAt(item, field))).join('\t')}\n`;
}

function valueAt(data: unknown, path: string): unknown {
  let value = data;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

/** Control characters would split a line or a column, and could steer the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, escaped);
}

/** The escape sequence of JSON for a control character, such as \n or \u001b. */
export function escaped(control: string): string {
  const short = JSON.stringify(control).slice(1, -1);
  return short.length > 1 ? short : `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
