import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import type { DocumentVersion } from '../settings/settings.ts';

/** The models that definitions may name: for people who set up a client. Postern runs none, and stores no key of a provider. */
const modelName = z
  .string()
  .min(1)
  .max(100)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$/,
    'must begin with a letter or digit, and have letters, digits and . _ : / @ + - only',
  );

export const agentModelsSchema = z
  .strictObject({
    models: z
      .array(
        z
          .strictObject({
            name: modelName.describe('The name that the client uses'),
            note: z
              .string()
              .max(500)
              .refine((text) => !/[\p{Cc}\p{Cs}]/u.test(text), 'must not contain control characters')
              .describe('For people who choose a model, such as “approved for source code”'),
          })
          .meta({ id: 'AgentModel' }),
      )
      .max(100)
      .refine((models) => new Set(models.map(({ name }) => name)).size === models.length, {
        message: 'must name each model once',
      })
      .describe('In the order in which they are offered'),
  })
  .meta({ id: 'AgentModels' });

export type AgentModels = z.infer<typeof agentModelsSchema>;

export const agentModelsName = 'agent-models';
export const defaultAgentModels: AgentModels = { models: [] };

const storedSchema = z.object({ models: z.array(z.object({ name: z.string() })) });

/** The names in the stored document, even one of another release. */
export function modelNamesIn(document: DocumentVersion | undefined): string[] {
  const { models } = storedSchema.parse(document?.value ?? defaultAgentModels);
  return models.map(({ name }) => name);
}

/** Definitions that name a model outside this list. */
export type NamedModel = { readonly model: string; readonly definitions: string[] };

export function namedOutside(
  { models }: AgentModels,
  definitions: readonly { readonly name: string; readonly model: string | null }[],
): NamedModel[] {
  const offered = new Set(models.map(({ name }) => name));
  const found = new Map<string, string[]>();
  for (const { name, model } of definitions) {
    if (model !== null && !offered.has(model)) found.set(model, [...(found.get(model) ?? []), name]);
  }
  return [...found].map(([model, names]) => ({ model, definitions: names }));
}

/** @throws AppError state_conflict */
export function requireNoneNamed(named: readonly NamedModel[]): void {
  if (named.length === 0) return;
  const words = named.map(({ model, definitions }) => `${model} (${definitions.join(', ')})`);
  throw new AppError('state_conflict', {
    message: `Agent definitions name models that the document leaves out: ${words.join('; ')}.`,
    hint: 'Choose another model in these definitions first.',
    details: { named },
  });
}
