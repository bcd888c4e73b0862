import { defaultAgentModels } from '../src/features/agents/agent-models.ts';
import { defaultMcpPolicy } from '../src/features/agents/mcp-policy.ts';
import { defaultEnvironmentPolicy } from '../src/features/environments/policy/environment-policy.ts';
import { defaultKeyPolicy } from '../src/features/keys/key-policy.ts';
import { maxTrustRules, presetDefaults, requiredClaims } from '../src/features/keys/trust-rule.ts';
import { presets } from '../src/features/keys/trusted-issuer.ts';
import { defaultAccessConfig } from '../src/features/people/login/access-config.ts';
import { defaultSitesConfig } from '../src/features/sites/site/sites-config.ts';
import type { JsonSchema, OpenApi } from '../src/surfaces/web/openapi/types.ts';
import type { Bounds } from './src/administration/documents/fields.ts';

/** The configuration documents that have a form, by the names of their schemas, with their defaults. */
const documents = {
  AccessConfig: defaultAccessConfig({ isKeycloak: false }),
  AgentModels: defaultAgentModels,
  EnvironmentPolicy: defaultEnvironmentPolicy,
  KeyPolicy: defaultKeyPolicy,
  McpPolicy: defaultMcpPolicy,
  SitesConfig: defaultSitesConfig,
};

/** A module with the bounds and the default of each setting of the documents, by its path. */
export function documentBounds({ components: { schemas } }: OpenApi): string {
  function settingsOf(path: string, schema: JsonSchema, standard: unknown): [string, Bounds][] {
    const { properties } = resolved(schema);
    if (properties === undefined) return [[path, { ...boundsOf(path, schema), standard }]];
    return Object.entries(properties).flatMap(([name, property]) =>
      settingsOf(
        path === '' ? name : `${path}.${name}`,
        property as JsonSchema,
        (standard as Record<string, unknown>)[name],
      ),
    );
  }

  function resolved(schema: JsonSchema): JsonSchema {
    const name = schema.$ref?.split('/').at(-1);
    return name === undefined ? schema : (schemas[name] ?? {});
  }

  function boundsOf(path: string, schema: JsonSchema) {
    const { type, enum: choices, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER } = schema;
    const { maxLength, maxItems = Number.MAX_SAFE_INTEGER, items } = schema;
    if (type === 'boolean') return { kind: 'switch' } as const;
    if (type === 'integer' || type === 'number') {
      // A field has two decimals: 0.01 is the smallest value above an exclusive minimum of 0.
      const above =
        exclusiveMinimum === undefined
          ? undefined
          : Number(exclusiveMinimum) + (type === 'integer' ? 1 : 0.01);
      const min = schema.minimum ?? above;
      if (min === undefined) throw new Error(`The setting ${path} has no minimum.`);
      // Sizes are recognized by their names, such as maxFileBytes.
      return { kind: /bytes/i.test(path) ? 'bytes' : 'number', min, max: maximum } as const;
    }
    if (type === 'string' && choices !== undefined)
      return { kind: 'choice', choices: choices.map(String) } as const;
    if (type === 'string' && maxLength !== undefined)
      return { kind: 'text', maxCharacters: maxLength } as const;
    const entry = resolved(items as JsonSchema);
    if (entry.enum !== undefined) return { kind: 'choices', choices: entry.enum.map(String) } as const;
    if (entry.type === 'number') return { kind: 'numbers' } as const;
    if (entry === schemas['TrustedIssuer']) {
      const { maxLength: maxCharacters = 0 } = resolved(entry.properties?.['url'] as JsonSchema);
      return { kind: 'issuers', maxEntries: maxItems, maxCharacters } as const;
    }
    return { kind: entry.type === 'object' ? 'models' : 'words' } as const;
  }

  const bounds = Object.entries(documents).map(([name, standard]) => [
    name,
    Object.fromEntries(settingsOf('', { $ref: name }, standard)),
  ]);
  return `export const bounds = ${JSON.stringify(Object.fromEntries(bounds), null, 2)} as const;\n`;
}

/** A module with the bounds and defaults of a trust rule, and the claims that each preset requires: one of each group. */
export function trustBounds({ components: { schemas } }: OpenApi): string {
  const { properties = {} } = schemas['TrustRuleRequest'] ?? {};
  const minutes = (name: string) => {
    const { minimum, maximum } = properties[name] as JsonSchema;
    return { min: minimum, max: maximum };
  };
  const { default: standard } = properties['maxTtlMinutes'] as JsonSchema;
  const ofPresets = presets.map((preset) => [
    preset,
    { ...presetDefaults[preset], required: requiredClaims[preset] },
  ]);
  const bounds = {
    maxRules: maxTrustRules,
    maxTtlMinutes: { ...minutes('maxTtlMinutes'), standard },
    maxAgeMinutes: minutes('maxAgeMinutes'),
    presets: Object.fromEntries(ofPresets),
  };
  return `export const trustBounds = ${JSON.stringify(bounds, null, 2)} as const;\n`;
}
