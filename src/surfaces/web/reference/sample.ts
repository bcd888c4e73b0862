import type { JsonSchema, OpenApi } from '../openapi/types.ts';
import { asSchema, resolved } from './schema-table.ts';

/** A plausible value of a schema, for operations without an example. */
export function sampleOf(
  given: JsonSchema,
  schemas: OpenApi['components']['schemas'],
  depth = 0,
  name = '',
): unknown {
  const schema = resolved(given, schemas);
  if (schema.examples?.[0] !== undefined) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum !== undefined) return schema.enum[0];
  const option = (schema.oneOf ?? schema.anyOf)?.[0];
  if (option !== undefined) return sampleOf(asSchema(option), schemas, depth, name);
  // The first of several types is not `null`.
  const [type] = [schema.type].flat();
  switch (type) {
    case 'object':
      if (depth > 5) return {};
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([field, property]) => [
          field,
          sampleOf(asSchema(property), schemas, depth + 1, field),
        ]),
      );
    case 'array':
      return depth > 5 ? [] : [sampleOf(asSchema(schema.items), schemas, depth + 1, name)];
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 0, 1);
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'string':
    case undefined:
      return sampleText(schema, name);
  }
}

function sampleText(schema: JsonSchema, name: string): string {
  if (schema.format === 'date-time') return '2026-12-01T09:00:00.000Z';
  if (schema.format === 'uuid') return '0f8e4c1a-7d52-4b0e-9a36-2f1c5d8e7b90';
  // Never anything that could be taken for a credential.
  if (/token|secret|password/i.test(name)) return '••••';
  return name === '' ? 'text' : name;
}
