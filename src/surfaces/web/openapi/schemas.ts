import { z } from 'zod';
import type { JsonSchema, Parameter } from './types.ts';

/**
 * zod → JSON Schema draft 2020-12. Schemas with an id (`.meta({ id: 'Key' })`) are collected once under
 * components; the rest stays where it is used.
 */
export type SchemaWriter = {
  /** `input` is what a caller sends, `output` what we answer. */
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

  /** A schema whose sent and answered forms differ gets a second name for the sent one. */
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

/** A number in a query is sent as text; the reader is told the number it means. */
function clearest(sent: JsonSchema, meant: JsonSchema): JsonSchema {
  const isTextForNumber =
    sent.type === 'string' &&
    (meant.type === 'integer' || meant.type === 'number' || meant.type === 'boolean');
  return isTextForNumber ? meant : sent;
}

function asSchema(value: JsonSchema | boolean): JsonSchema {
  return typeof value === 'boolean' ? {} : value;
}

/** Points references at components and drops what only a machine of another kind needs. */
function tidy(schema: JsonSchema, renamed: ReadonlyMap<string, string>): JsonSchema {
  // Walks plain JSON that z.toJSONSchema just made; every object in it is a schema or a map of schemas.
  return walk(schema, renamed) as JsonSchema;
}

function walk(value: unknown, renamed: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => walk(item, renamed));
  if (typeof value !== 'object' || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value)) {
    // `format: date-time` says it; the pattern is a screenful.
    if (name === 'pattern' && 'format' in value) continue;
    if (name === 'minimum' && part === Number.MIN_SAFE_INTEGER) continue;
    if (name === 'maximum' && part === Number.MAX_SAFE_INTEGER) continue;
    if (name === 'id' && typeof part === 'string') continue;
    // Values, not schemas: an example's own `id` stays.
    if (name === 'examples' && Array.isArray(part)) {
      out[name] = part;
      continue;
    }
    out[name] = name === '$ref' && typeof part === 'string' ? reference(part, renamed) : walk(part, renamed);
  }
  return out;
}

function reference(target: string, renamed: ReadonlyMap<string, string>): string {
  const id = target.replace('#/$defs/', '');
  return `#/components/schemas/${renamed.get(id) ?? id}`;
}
