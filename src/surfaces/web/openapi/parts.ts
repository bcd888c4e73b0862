import type { JsonSchema } from './types.ts';

/**
 * Gives every object inside a schema a named schema: the object in `owner` of Site becomes SiteOwner. Generators
 * of Go and Python clients lose which fields may be null when a shared schema contains an unnamed object.
 * @throws Error when two different objects would get one name: give one of them an explicit id
 */
export function withNamedParts(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const found: Record<string, JsonSchema> = { ...schemas };

  function name(name: string, schema: JsonSchema): JsonSchema {
    const body = inside(name, schema);
    if (found[name] !== undefined && JSON.stringify(found[name]) !== JSON.stringify(body))
      throw new Error(`Two schemas would be ${name}.`);
    found[name] = body;
    return { $ref: `#/components/schemas/${name}` };
  }

  function inside(owner: string, schema: JsonSchema): JsonSchema {
    const { properties } = schema;
    if (properties === undefined) return schema;
    const parts = Object.entries(properties).map(([field, part]) => [
      field,
      typeof part === 'boolean' ? part : partOf(joined(owner, field), part),
    ]);
    return { ...schema, properties: Object.fromEntries(parts) };
  }

  function partOf(path: string, schema: JsonSchema): JsonSchema {
    const { items, oneOf, additionalProperties } = schema;
    if (schema.properties !== undefined) return name(path, schema);
    const objects = oneOf?.filter(({ properties }) => properties !== undefined) ?? [];
    const choice = (index: number) => (objects.length > 1 ? `${path}${index + 1}` : path);
    return {
      ...schema,
      ...(typeof items === 'object' && !Array.isArray(items) ? { items: partOf(`${path}Item`, items) } : {}),
      ...(typeof additionalProperties === 'object'
        ? { additionalProperties: valueOf(`${path}Value`, additionalProperties) }
        : {}),
      ...(oneOf === undefined ? {} : { oneOf: oneOf.map((one, index) => partOf(choice(index), one)) }),
    };
  }

  /** The values of a map. One of several types counts as an object here; `true` means the same as `{}`. */
  function valueOf(path: string, schema: JsonSchema): JsonSchema | boolean {
    if (Object.keys(schema).length === 0) return true;
    const isOfSeveral = Array.isArray(schema.type) || schema.anyOf !== undefined;
    return isOfSeveral ? name(path, schema) : partOf(path, schema);
  }

  for (const [owner, schema] of Object.entries(schemas)) found[owner] = inside(owner, schema);
  return found;
}

function joined(owner: string, field: string): string {
  return `${owner}${field.slice(0, 1).toUpperCase()}${field.slice(1)}`;
}
