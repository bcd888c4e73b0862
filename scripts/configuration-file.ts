import { publishedSchema } from '../src/features/configuration-file/configuration-file.ts';

/** The fields of postern.yaml for the reference: one section for each map of fields, from its JSON Schema. */
export type FieldSection = {
  readonly path: string;
  readonly meaning: string;
  /** Field, type, default, meaning and example. */
  readonly rows: readonly string[][];
};

type Schema = {
  readonly type?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
};

export function configurationFileFields(): FieldSection[] {
  // The published schema uses only the keywords above.
  return sectionsOf(publishedSchema('') as Schema, '');
}

function sectionsOf(schema: Schema, path: string): FieldSection[] {
  const { properties, additionalProperties } = schema;
  if (properties === undefined) {
    if (typeof additionalProperties !== 'object') return [];
    return sectionsOf(additionalProperties, `${path}.NAME`);
  }
  const inside = Object.entries(properties).flatMap(([name, field]) =>
    sectionsOf(field, path === '' ? name : `${path}.${name}`),
  );
  const rows = Object.entries(properties).map(([name, field]) => rowOf(name, field, schema.required ?? []));
  return [{ path, meaning: schema.description ?? '', rows }, ...inside];
}

function rowOf(name: string, field: Schema, required: readonly string[]): string[] {
  const [example] = field.examples ?? [];
  const isRequired = required.includes(name) && field.default === undefined;
  return [
    `\`${name}\``,
    typeOf(field),
    isRequired ? 'required' : field.default === undefined ? '–' : code(field.default),
    field.description ?? '',
    example === undefined ? '–' : code(example),
  ];
}

function typeOf({ type, enum: values, const: value, anyOf, minimum, maximum, items }: Schema): string {
  if (value !== undefined) return code(value);
  if (values !== undefined) return values.map(code).join(', ');
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ');
  if (type === 'array') return `list of ${items?.type === 'string' ? 'texts' : 'values'}`;
  if (type === 'integer' && maximum !== undefined) return `${minimum} to ${maximum}`;
  return { string: 'text', boolean: 'switch', object: 'map', integer: 'number' }[type ?? ''] ?? type ?? '';
}

/** Writes a value in YAML's flow style, of which JSON is a part. */
function code(value: unknown): string {
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}
