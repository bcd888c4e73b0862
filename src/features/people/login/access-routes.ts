import { z } from 'zod';
import type { Caller } from '../../../core/caller.ts';
import { timestampOrNull } from '../../../core/clock.ts';
import type { Route } from '../../../platform/http.ts';
import { timestampSchema } from '../../../platform/schemas.ts';
import { byAdministrators, type ConfigDocument, documentRoutes, widens } from '../../settings/settings.ts';
import {
  type AccessConfig,
  accessConfigSchema,
  defaultAccessConfig,
  secondFactorLevels,
} from './access-config.ts';

const versionSchema = z
  .strictObject({
    version: z.number().int().describe('0 = the built-in default'),
    changedAt: timestampSchema.nullable(),
    changedBy: z.string().nullable(),
    config: accessConfigSchema,
  })
  .meta({ id: 'AccessConfigVersion' });

const peaksSchema = z.strictObject({
  addressesOverLimit: z
    .number()
    .int()
    .describe('Addresses with more sign-ins in one minute of the last 24 hours than this document allows'),
  mostFromOneAddress: z
    .number()
    .int()
    .describe('The highest number of sign-ins from one address in one minute of the last 24 hours'),
});

const changeSchema = versionSchema
  .extend({ dryRun: peaksSchema.nullable().describe('With ?dryRun=true; nothing was changed') })
  .meta({ id: 'AccessConfigChange' });

const example = {
  version: 1,
  changedAt: '2026-01-01T09:00:00.000Z',
  changedBy: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
  config: defaultAccessConfig({ isKeycloak: false }),
};

const levelOf = ({ secondFactor }: AccessConfig) => secondFactorLevels.indexOf(secondFactor);

/**
 * Without the requirement of a fresh sign-in, a sign-in of any age is enough. A second factor for fewer people allows more, as
 * a higher number does.
 */
const comparable = (config: AccessConfig) => ({
  ...config,
  freshProofMinutes: config.freshProofMinutes === 0 ? Infinity : config.freshProofMinutes,
  secondFactor: -levelOf(config),
});

export function accessConfigRoutes(deps: {
  config: ConfigDocument<AccessConfig>;
  /** Sign-ins of the last 24 hours, compared with a limit. */
  peaks: (limit: number) => Promise<z.infer<typeof peaksSchema>>;
  /** Why this caller cannot require a second factor; null = can. */
  secondFactorRefusal: (caller: Caller) => Promise<Error | null>;
}): Route[] {
  const { config, peaks, secondFactorRefusal } = deps;
  return documentRoutes({
    path: 'access',
    operation: 'AccessConfig',
    tag: 'Access configuration',
    errors: ['config_invalid'],
    title: { one: 'access configuration', many: 'access configurations' },
    policy: byAdministrators,
    changeDescription:
      'Replaces the whole document. Takes effect everywhere within a second, and signs nobody out. Without `freshProofMinutes` or `secondFactor`, that field does not change. Only an administrator who has a passkey can raise `secondFactor`. `dryRun=true` compares the document with the sign-ins of the last 24 hours.',
    body: accessConfigSchema
      .partial({ freshProofMinutes: true, secondFactor: true })
      .meta({ id: 'AccessConfigInput' }),
    shown: versionSchema,
    change: changeSchema,
    example: { body: example.config, data: example },
    document: config,
    widens: (before, after) => widens(comparable(before), comparable(after)),
    async judge(caller) {
      const refusal = await secondFactorRefusal(caller);
      return (before, after) => {
        if (refusal !== null && levelOf(after) > levelOf(before)) throw refusal;
      };
    },
    async dryRun(ifMatch, next) {
      const current = await config.matched(ifMatch);
      return { current, impact: await peaks(next.signInsPerAddressPerMinute) };
    },
    toShown: ({ version, value, changedAt, changedBy }) => ({
      version,
      changedAt: timestampOrNull(changedAt),
      changedBy,
      config: value,
    }),
  });
}
