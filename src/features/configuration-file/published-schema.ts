import { z } from 'zod';
import { configurationFile } from './schema.ts';

/** The JSON Schema of postern.yaml, in draft 7, which every editor's YAML plugin reads. */
export function publishedSchema(id: string) {
  const { $schema, ...schema } = z.toJSONSchema(configurationFile, { io: 'input', target: 'draft-7' });
  return { $schema, $id: id, title: 'postern.yaml', ...schema };
}
