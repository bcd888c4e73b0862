import type { Schemas } from '../../api/contract.ts';
import { hoursInWords } from '../../shell/time.ts';
import { bytesInWords } from '../../shell/bytes.ts';
import { issuerInWords, issuersOf, mistakesInIssuers } from '../policy/issuers.ts';

/** A setting's values and its default, from the server's schema: bounds.ts, which the build writes. */
export type Bounds = { readonly standard: unknown } & (
  | { readonly kind: 'switch' | 'numbers' | 'words' | 'models' }
  | { readonly kind: 'number' | 'bytes'; readonly min: number; readonly max: number }
  | { readonly kind: 'choices' | 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'issuers'; readonly maxEntries: number; readonly maxCharacters: number }
  | { readonly kind: 'text'; readonly maxCharacters: number }
);

/** How the page names and explains a setting. */
type FieldText<Path extends string> = {
  /** The path in the document, such as `lifetime.personal.maxTtlHours`. */
  readonly path: Path;
  readonly label: string;
  /** What the setting decides, and why to change it. */
  readonly says: string;
  /** The states of a switch: “on” and “off” unless set. */
  readonly on?: string;
  readonly off?: string;
  readonly unit?: string;
  /** What a list without entries means. */
  readonly empty?: string;
  /** Labels of the choices. */
  readonly labels?: Readonly<Record<string, string>>;
};

export type Field = FieldText<string> & Bounds;

type SectionOf<F> = {
  readonly title: string;
  readonly says: string;
  readonly fields: readonly F[];
  /** Many settings of one kind, closer together. */
  readonly isDense?: boolean;
};
export type Section = SectionOf<Field>;
export type SectionText<Path extends string> = SectionOf<FieldText<Path>>;

/** Adds its bounds to each setting. */
export function sectionsOf<Path extends string>(
  bounds: Readonly<Record<Path, Bounds>>,
  sections: readonly SectionText<NoInfer<Path>>[],
): readonly Section[] {
  return sections.map(({ fields, ...section }) => ({
    ...section,
    fields: fields.map((field) => {
      const own: Bounds = bounds[field.path];
      return { ...field, ...own };
    }),
  }));
}

export const fieldsOf = (sections: readonly Section[]): Field[] => sections.flatMap(({ fields }) => fields);

/** Shown in a list of changes or mistakes, which lacks the heading above a field. */
export function nameOf(sections: readonly Section[], path: string): string {
  for (const { title, fields } of sections) {
    const field = fields.find((one) => `${path}.`.startsWith(`${one.path}.`));
    if (field !== undefined)
      return `${title}: ${withinSentence(field.label)}${placeIn(path.slice(field.path.length + 1))}`;
  }
  return path;
}

/** The place inside a list, such as `1.url`, for people, who count entries from 1. */
function placeIn(path: string): string {
  if (path === '') return '';
  return `, ${path.replace(/^\d+/, (at) => `entry ${Number(at) + 1}`).replace('.', ', ')}`;
}

/** Abbreviations stay as they are. */
function withinSentence(label: string): string {
  return /^[A-Z][a-z]/.test(label) ? `${label[0]?.toLowerCase()}${label.slice(1)}` : label;
}

export function valueInWords(field: Field | undefined, value: unknown): string {
  if (field?.kind === 'switch') return value === true ? (field.on ?? 'on') : (field.off ?? 'off');
  if (field?.kind === 'choice') return field.labels?.[String(value)] ?? String(value);
  if (field?.kind === 'bytes' && typeof value === 'number') return bytesInWords(value);
  if (field?.kind === 'number' && typeof value === 'number')
    return `${value.toLocaleString()} ${unitFor(value, field.unit)}${inBrackets(inDays(field, value))}`.trim();
  if (Array.isArray(value)) {
    if (value.length === 0) return field?.empty ?? 'none';
    // A longer list is visible in the control beside it.
    if (value.length > 12) return `${value.length} entries`;
    const unit = field?.kind === 'numbers' ? ` ${field.unit}` : '';
    return `${entriesInWords(field, value).join(', ')}${unit}${inBrackets(inDays(field, value))}`;
  }
  return value === '' || value === undefined ? 'empty' : JSON.stringify(value);
}

export function entriesInWords(field: Field | undefined, entries: readonly unknown[]): string[] {
  if (field?.kind === 'issuers') return issuersOf(entries).map(issuerInWords);
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

/** Checks a value before it is sent, and returns its mistakes by their paths. The server checks everything again. */
export function mistakesIn(field: Field, value: unknown): Readonly<Record<string, string>> {
  if (field.kind === 'issuers') return mistakesInIssuers(field.path, value);
  if (field.kind !== 'number' && field.kind !== 'bytes') return {};
  const { min, max } = field;
  if (typeof value === 'number' && value >= min && value <= max) return {};
  const say = (bound: number) => (field.kind === 'bytes' ? bytesInWords(bound) : bound.toLocaleString());
  return { [field.path]: `Enter a number from ${say(min)} to ${say(max)}.` };
}

/** Units are plural; one of them is not. */
export function unitFor(value: unknown, unit = ''): string {
  return value === 1 ? unit.replace(/ies$/, 'y').replace(/s$/, '') : unit;
}
