import { z } from 'zod';
import type { JsonSchema, Parameter } from './types.ts';

/**
 * Converts zod to JSON Schema draft 2020-12. Schemas with an id (`.meta({ id: 'Key' })`) are collected once under
 * components; the others stay inline.
 */
export type SchemaWriter = {
  /** `input` is what a client sends, `output` what the API returns. */
  write(schema: z.ZodType, io: 'input' | 'output'): JsonSchema;
  parameters(schema: z.ZodType, where: 'path' | 'query'): Parameter[];
  readonly components: Readonly<Record<string, JsonSchema>>;
};

export function schemaWriter(): SchemaWriter {
  const components: Record<string, JsonSchema> = {};

  function write(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    const { $schema: _, $defs, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
    const renamed = new Map(Object.entries($defs ?? {}).map(([id, body]) => [id, nameFor(id, body, io)]));
    for (const [id, body] of Object.entries($defs ?? {})) {
      components[renamed.get(id) ?? id] = tidy(body, renamed);
    }
    return tidy(rest, renamed);
  }

  /** A schema whose input and output forms differ gets a second name for the input form. */
  function nameFor(id: string, body: JsonSchema, io: 'input' | 'output'): string {
    const existing = components[id];
    const same = existing === undefined || JSON.stringify(existing) === JSON.stringify(tidy(body, new Map()));
    return same ? id : `${id}${io === 'input' ? 'Input' : 'Output'}`;
  }

  function parameters(schema: z.ZodType, where: 'path' | 'query'): Parameter[] {
    const sent = write(schema, 'input');
    const meant = write(schema, 'output');
    return Object.entries(sent.properties ?? {}).map(([name, property]) => {
      const { description, ...body } = clearest(asSchema(property), asSchema(meant.properties?.[name] ?? {}));
      return {
        name,
        in: where,
        required: where === 'path' || (sent.required ?? []).includes(name),
        ...(description === undefined ? {} : { description }),
        schema: body,
      };
    });
  }

  return { write, parameters, components };
}

/** A client sends a number in a query as text; the document describes the number. */
function clearest(sent: JsonSchema, meant: JsonSchema): JsonSchema {
  const isTextForNumber =
    sent.type === 'string' &&
    (meant.type === 'integer' || meant.type === 'number' || meant.type === 'boolean');
  return isTextForNumber ? meant : sent;
}

function asSchema(value: JsonSchema | boolean): JsonSchema {
  return typeof value === 'boolean' ? {} : value;
}

/** Points references at components and drops keywords that readers of the document do not need. */
function tidy(schema: JsonSchema, renamed: ReadonlyMap<string, string>): JsonSchema {
  // Walks plain JSON that z.toJSONSchema just made; every object in it is a schema or a map of schemas.
  return walk(schema, renamed) as JsonSchema;
}

function walk(value: unknown, renamed: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => walk(item, renamed));
  if (typeof value !== 'object' || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value)) {
    // `format: date-time` says the same; the pattern would fill a screen.
    if (name === 'pattern' && 'format' in value) continue;
    if (name === 'minimum' && part === Number.MIN_SAFE_INTEGER) continue;
    if (name === 'maximum' && part === Number.MAX_SAFE_INTEGER) continue;
    if (name === 'id' && typeof part === 'string') continue;
    // Examples are values, not schemas: their own `id` stays.
    if (name === 'examples' && Array.isArray(part)) {
      out[name] = part;
      continue;
    }
    out[name] = name === '$ref' && typeof part === 'string' ? reference(part, renamed) : walk(part, renamed);
  }
  return readable(wide(out));
}

/** Without it, generated clients hold a number in 32 bits, which is too few for the bytes of a site. */
function wide(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { type, maximum = Number.MAX_SAFE_INTEGER } = schema;
  return type === 'integer' && Number(maximum) > 2 ** 31 - 1 ? { ...schema, format: 'int64' } : schema;
}

/**
 * Marks a value as nullable in the two forms that client generators read: `type: ['string', 'null']`, and `oneOf` for a
 * schema of components. The first means the same as `anyOf`, because a keyword such as maxLength applies only to values
 * of its type.
 */
function readable({ anyOf, ...schema }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (!Array.isArray(anyOf)) return schema;
  const types = new Set(anyOf.map(({ type }) => type));
  const isNullable = anyOf.length === 2 && types.has('null');
  if (isNullable && (types.has(undefined) || anyOf.some(({ properties }) => properties !== undefined)))
    return { oneOf: anyOf, ...schema };
  const hasValues = anyOf.some((one) => one.const !== undefined || (one.enum !== undefined && !isNullable));
  // Generators for Go stop at a list of several types besides null.
  const isOfSeveral = types.size - Number(types.has('null')) > 1;
  if (hasValues || isOfSeveral || types.has(undefined) || types.size < anyOf.length)
    return { anyOf, ...schema };
  const merged = Object.assign({}, ...anyOf);
  const values = merged.enum === undefined ? {} : { enum: [...merged.enum, null] };
  return { ...merged, type: [...types], ...values, ...schema };
}

function reference(target: string, renamed: ReadonlyMap<string, string>): string {
  const id = target.replace('#/$defs/', '');
  return `#/components/schemas/${renamed.get(id) ?? id}`;
}
