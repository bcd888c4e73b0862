import { z } from 'zod';
import { callerKinds } from '../../../core/caller.ts';
import { type Clock, timestamp, timestampOrNull } from '../../../core/clock.ts';
import { defineRoute, type Route } from '../../../platform/http.ts';
import { timestampSchema } from '../../../platform/schemas.ts';
import { byAdministrators, type ConfigDocument, documentRoutes } from '../../settings/settings.ts';
import {
  defaultEnvironmentPolicy,
  type EnvironmentPolicy,
  environmentPolicySchema,
  type IsolationInForce,
  isolationSchema,
  policyForEveryoneSchema,
} from './environment-policy.ts';

const versionSchema = z
  .strictObject({
    version: z.number().int().describe('0 = the built-in default'),
    changedAt: timestampSchema.nullable(),
    changedBy: z.string().nullable(),
    policy: environmentPolicySchema,
    warnings: z.array(z.string()).describe('What stops Environments although the policy allows them'),
  })
  .meta({ id: 'EnvironmentPolicyVersion' });

const changeSchema = versionSchema
  .extend({
    dryRun: z
      .strictObject({
        changed: z.array(z.string()).describe('Fields that differ from the document in force'),
      })
      .nullable()
      .describe('With ?dryRun=true; nothing was changed'),
  })
  .meta({ id: 'EnvironmentPolicyChange' });

const exampleVersion = {
  version: 1,
  changedAt: '2026-01-01T09:00:00.000Z',
  changedBy: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
  policy: defaultEnvironmentPolicy,
  warnings: [],
};

const exampleIsolation: IsolationInForce = {
  kind: 'bwrap',
  isComplete: true,
  message:
    'Environments run in a sandbox: code reaches other machines, but no file, process or loopback address of this one without a flaw in the kernel. The kernel limits their memory. It does not limit their disk: Postern ends what uses too much within seconds.',
};

const shownSchema = policyForEveryoneSchema
  .extend({
    isolation: isolationSchema.nullable().describe('Null: nothing runs Environments here'),
    serverTime: timestampSchema.describe('The clock that decides about the ends of leases'),
  })
  .meta({ id: 'EnvironmentPolicyForEveryone' });

export function environmentPolicyRoutes(
  policy: ConfigDocument<EnvironmentPolicy>,
  {
    isolation,
    hasEngine,
    clock,
  }: {
    readonly isolation: IsolationInForce | null;
    readonly hasEngine: boolean;
    readonly clock: Clock;
  },
): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/environments/policy',
      operationId: 'readEnvironmentPolicyForEveryone',
      tag: 'Environments',
      summary: 'Read what Environments may be',
      description:
        'The part of the Environment policy that people need: what is allowed, lifetimes, quotas, and what isolates the code of repositories.',
      policy: { callers: callerKinds, role: 'user', identity: 'people' },
      success: { status: 200, data: shownSchema },
      example: {
        data: {
          ...forEveryone(defaultEnvironmentPolicy),
          isolation: exampleIsolation,
          serverTime: '2026-01-01T09:00:00.000Z',
        },
      },
      async handle() {
        const { value } = await policy.inForce();
        return { data: { ...forEveryone(value), isolation, serverTime: timestamp(clock.now()) } };
      },
    }),
    ...documentRoutes({
      path: 'api-environments',
      operation: 'EnvironmentPolicy',
      tag: 'Environment policy',
      title: { one: 'Environment policy', many: 'Environment policies' },
      policy: byAdministrators,
      changeDescription:
        'Replaces the whole document. Takes effect everywhere within a second. A lower maximum never shortens a lease. `dryRun=true` lists the fields that the document would change.',
      body: environmentPolicySchema,
      shown: versionSchema,
      change: changeSchema,
      example: { body: defaultEnvironmentPolicy, data: exampleVersion },
      document: policy,
      async dryRun(ifMatch, next) {
        const current = await policy.matched(ifMatch);
        return { current, impact: { changed: changedFields(current.value, next) } };
      },
      toShown: ({ version, value, changedAt, changedBy }) => ({
        version,
        changedAt: timestampOrNull(changedAt),
        changedBy,
        policy: value,
        warnings: value.enabled && !hasEngine ? [noEngine] : [],
      }),
    }),
  ];
}

const noEngine =
  'Environments are enabled, but no engine runs them: ENVIRONMENTS_ENGINE is off. Set it to local or kubernetes, and restart Postern.';

function changedFields(before: EnvironmentPolicy, after: EnvironmentPolicy): string[] {
  const old = new Map(Object.entries(before).map(([field, value]) => [field, JSON.stringify(value)]));
  return Object.entries(after)
    .filter(([field, value]) => old.get(field) !== JSON.stringify(value))
    .map(([field]) => field);
}

function forEveryone(policy: EnvironmentPolicy) {
  return policyForEveryoneSchema.strip().parse(policy);
}
