import type { Schemas } from '../../api/contract.ts';
import { hoursInWords } from '../../shell/time.ts';
import { bytesInWords } from '../../shell/bytes.ts';

/** How one setting of a configuration document is shown and edited; the document itself is the server's. */
export type Field = {
  /** The path in the document, such as `lifetime.personal.maxTtlHours`. */
  readonly path: string;
  readonly label: string;
  /** What the setting decides, and why to change it. */
  readonly says: string;
  /** The default of an installation. */
  readonly standard: unknown;
} & (
  | { readonly kind: 'switch'; readonly on: string; readonly off: string }
  | { readonly kind: 'number'; readonly unit: string; readonly min: number; readonly max: number }
  | { readonly kind: 'bytes'; readonly max: number }
  | { readonly kind: 'numbers'; readonly unit: string }
  /** `empty`: what a list without entries means. */
  | { readonly kind: 'words'; readonly empty?: string }
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  /** One of a few, each with its label. */
  | { readonly kind: 'choice'; readonly labels: Readonly<Record<string, string>> }
  | { readonly kind: 'text'; readonly maxCharacters: number }
  | { readonly kind: 'models' }
);

export type Section = {
  readonly title: string;
  readonly says: string;
  readonly fields: readonly Field[];
  /** Many settings of one kind, closer together. */
  readonly isDense?: boolean;
};

export const fieldsOf = (sections: readonly Section[]): Field[] => sections.flatMap(({ fields }) => fields);

/** Shown in a list of changes, which lacks the heading above a field. */
export function nameOf(sections: readonly Section[], path: string): string {
  for (const { title, fields } of sections) {
    const field = fields.find((one) => one.path === path);
    if (field !== undefined) return `${title}: ${withinSentence(field.label)}`;
  }
  return path;
}

/** Abbreviations stay as they are. */
function withinSentence(label: string): string {
  return /^[A-Z][a-z]/.test(label) ? `${label[0]?.toLowerCase()}${label.slice(1)}` : label;
}

export function valueInWords(field: Field | undefined, value: unknown): string {
  if (field?.kind === 'switch') return value === true ? field.on : field.off;
  if (field?.kind === 'choice') return field.labels[String(value)] ?? String(value);
  if (field?.kind === 'bytes' && typeof value === 'number') return bytesInWords(value);
  if (field?.kind === 'number' && typeof value === 'number')
    return `${value.toLocaleString()} ${unitFor(value, field.unit)}${inBrackets(inDays(field, value))}`.trim();
  if (Array.isArray(value)) {
    if (value.length === 0) return (field?.kind === 'words' ? field.empty : undefined) ?? 'none';
    // A longer list is visible in the control beside it.
    if (value.length > 12) return `${value.length} entries`;
    const unit = field?.kind === 'numbers' ? ` ${field.unit}` : '';
    return `${entriesInWords(field, value).join(', ')}${unit}${inBrackets(inDays(field, value))}`;
  }
  return value === '' || value === undefined ? 'empty' : JSON.stringify(value);
}

export function entriesInWords(field: Field | undefined, entries: readonly unknown[]): string[] {
  return field?.kind === 'models' ? modelsOf(entries).map(modelInWords) : entries.map(String);
}

type Model = Schemas['AgentModel'];

export function modelsOf(value: unknown): Model[] {
  // Edited from a list the server sent; it checks every model again.
  return Array.isArray(value) ? (value as Model[]) : [];
}

function modelInWords({ name, note }: Model): string {
  return note === '' ? name : `${name} (${note})`;
}

/** Settings are in hours; the forms for keys speak of days, so both are shown. */
export function inDays(field: Field | undefined, value: unknown): string | undefined {
  if ((field?.kind !== 'number' && field?.kind !== 'numbers') || field.unit !== 'hours') return undefined;
  const hours = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'number');
  return hours.some((one) => one % 24 === 0) ? hours.map(hoursInWords).join(', ') : undefined;
}

function inBrackets(text: string | undefined): string {
  return text === undefined ? '' : ` (${text})`;
}

/** Checks a value before it is sent. The server checks everything again. */
export function mistakeIn(field: Field, value: unknown): string | undefined {
  if (field.kind !== 'number' && field.kind !== 'bytes') return undefined;
  const [min, max] = field.kind === 'bytes' ? [1, field.max] : [field.min, field.max];
  if (typeof value === 'number' && value >= min && value <= max) return undefined;
  const say = (bound: number) => (field.kind === 'bytes' ? bytesInWords(bound) : bound.toLocaleString());
  return `Enter a number from ${say(min)} to ${say(max)}.`;
}

/** Units are plural; one of them is not. */
export function unitFor(value: unknown, unit: string): string {
  return value === 1 ? unit.replace(/ies$/, 'y').replace(/s$/, '') : unit;
}
