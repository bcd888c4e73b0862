import type { JsonSchema, OpenApi } from '../openapi/types.ts';
import { type Html, html } from '../html.ts';
import { inline } from './prose.ts';

type Schemas = OpenApi['components']['schemas'];
type Row =
  | {
      readonly kind: 'field';
      readonly path: string[];
      readonly schema: JsonSchema;
      readonly isRequired: boolean;
    }
  | { readonly kind: 'either'; readonly path: string[]; readonly text: string };

/** The fields of an object as a table for people, nested fields below their parent. */
export function schemaTable(schema: JsonSchema, schemas: Schemas, caption: string): Html {
  const rows = rowsOf(schema, schemas, [], 0);
  if (rows.length === 0) return html`<p class="quiet">${capital(typeOf(schema, schemas))}.</p>`;
  return html`<div class="scroll"><table class="stack"><caption>${caption}</caption>
<thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>${rows.map((row) => tableRow(row, schemas))}</tbody></table></div>`;
}

function tableRow(row: Row, schemas: Schemas): Html {
  if (row.kind === 'either') {
    return html`<tr class="either"><td colspan="3">${fieldName(row.path)} ${row.text}</td></tr>`;
  }
  const { schema, path, isRequired } = row;
  return html`<tr><td>${fieldName(path)}${isRequired && html` <span class="required">required</span>`}</td>
<td class="type">${typeOf(schema, schemas)}</td><td>${meaning(schema, schemas)}</td></tr>`;
}

/** Parents are dimmed, so that the eye finds the field itself. */
function fieldName(path: readonly string[]): Html {
  const parents = path.slice(0, -1);
  return html`<code class="field">${parents.map((parent) => html`<span>${parent}.</span><wbr>`)}${path.at(-1) ?? ''}</code>`;
}

function rowsOf(given: JsonSchema, schemas: Schemas, path: string[], depth: number): Row[] {
  const schema = bare(given, schemas);
  if (depth > 5) return [];
  const variants = objectVariants(schema, schemas);
  if (variants.length > 1) {
    return variants.flatMap((variant, at): Row[] => [
      { kind: 'either', path, text: at === 0 ? 'is either' : 'or' },
      ...rowsOf(variant, schemas, path, depth + 1),
    ]);
  }
  if (schema.type === 'array') {
    const item = asSchema(schema.items);
    return rowsOf(
      item,
      schemas,
      path.length === 0 ? ['[]'] : [...path.slice(0, -1), `${path.at(-1)}[]`],
      depth + 1,
    );
  }
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]): Row[] => {
    const child = asSchema(property);
    const here = [...path, name];
    const isRequired = schema.required?.includes(name) ?? false;
    return [
      { kind: 'field', path: here, schema: child, isRequired },
      ...rowsOf(child, schemas, here, depth + 1),
    ];
  });
}

function objectVariants(schema: JsonSchema, schemas: Schemas): JsonSchema[] {
  const options = (schema.oneOf ?? schema.anyOf ?? []).map((one) => resolved(asSchema(one), schemas));
  return options.filter((one) => one.properties !== undefined);
}

/** The schema itself, without the `null` that it may also allow. */
function bare(given: JsonSchema, schemas: Schemas): JsonSchema {
  const schema = resolved(given, schemas);
  const choices = schema.oneOf ?? schema.anyOf ?? [];
  const options = choices.map(asSchema).filter((one) => one.type !== 'null');
  if (options.length === 1 && options[0] !== undefined) return resolved(options[0], schemas);
  const [type, ...more] = [schema.type].flat().filter((one) => one !== 'null');
  return type === undefined || more.length > 0 ? schema : { ...schema, type };
}

export function resolved(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const id = schema.$ref?.replace('#/components/schemas/', '');
  return id === undefined ? schema : (schemas[id] ?? schema);
}

export function asSchema(value: unknown): JsonSchema {
  // Draft 2020-12 allows `true` for "anything"; zod writes objects, so only that case is left.
  return typeof value === 'object' && value !== null ? (value as JsonSchema) : {};
}

export function typeOf(given: JsonSchema, schemas: Schemas): string {
  const schema = resolved(given, schemas);
  const options = schema.oneOf ?? schema.anyOf;
  if (options !== undefined) {
    const shapes = objectVariants(schema, schemas).length;
    if (shapes > 1) return `one of ${shapes} shapes`;
    const names = options.map((one) => typeOf(asSchema(one), schemas));
    return [...new Set(names)].join(' or ');
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  // One of several types is usually `null`; the other keywords apply to the rest.
  if (Array.isArray(schema.type))
    return schema.type
      .map((type) => (type === 'null' ? type : typeOf({ ...schema, type }, schemas)))
      .join(' or ');
  if (schema.type === 'array') return `array of ${plural(typeOf(asSchema(schema.items), schemas))}`;
  if (schema.format === 'date-time') return 'timestamp';
  if (schema.type === 'object' && schema.properties === undefined) return 'map';
  return String(schema.type ?? 'anything');
}

function plural(name: string): string {
  return /^[a-z]+$/.test(name) ? `${name}s` : name;
}

/** The description, followed by the limits that a program would read from the schema. */
export function meaning(given: JsonSchema, schemas: Schemas): Html {
  const schema = bare(given, schemas);
  const item = schema.type === 'array' ? resolved(asSchema(schema.items), schemas) : schema;
  const facts = [
    above(schema),
    bounds(schema.minimum, schema.maximum, ''),
    bounds(schema.minLength, schema.maxLength, 'character'),
    bounds(schema.minItems, schema.maxItems, 'entry'),
    schema.default === undefined ? '' : `Default \`${JSON.stringify(schema.default)}\`.`,
  ].filter((fact) => fact !== '');
  const description = given.description ?? schema.description;
  return html`${description !== undefined && inline(ended(description))} ${inline(facts.join(' '))}
${item.enum !== undefined && html`<span class="values">${item.enum.map((one) => html`<code>${String(one)}</code> `)}</span>`}`;
}

function above({ exclusiveMinimum: floor }: JsonSchema): string {
  return typeof floor === 'number' ? `More than ${number(floor)}.` : '';
}

function bounds(min: number | undefined, max: number | undefined, unit: Unit): string {
  if (min !== undefined && max !== undefined) return `${number(min)} to ${number(max)}${units(unit, max)}.`;
  if (min !== undefined) return `At least ${number(min)}${units(unit, min)}.`;
  return max === undefined ? '' : `At most ${number(max)}${units(unit, max)}.`;
}

type Unit = '' | 'character' | 'entry';

function units(unit: Unit, count: number): string {
  if (unit === '') return '';
  if (count === 1) return ` ${unit}`;
  return unit === 'entry' ? ' entries' : ' characters';
}

function number(value: number): string {
  return value.toLocaleString('en');
}

function ended(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
