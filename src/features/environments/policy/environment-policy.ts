import { z } from 'zod';
import { accessKinds, maxServices, maxTtlHours } from '../../configuration-file/configuration-file.ts';

/**
 * The Environment policy, `/config/api-environments`: its shape, its bounds and its defaults. Every field is required,
 * because a client always sends a whole document.
 */
const mib = 1024 * 1024;
const whole = (min: number, max: number) => z.number().int().min(min).max(max);

/** Fields of the policy that everyone can read: what is allowed, for how long, and how much. */
const forEveryone = {
  enabled: z.boolean().describe('False: no Environment can be created, and none is served'),
  defaultTtlHours: whole(1, maxTtlHours).describe('Lease of an Environment whose request and file set none'),
  maxTtlHours: whole(1, maxTtlHours).describe(
    'Maximum hours from now to the end of a lease. A lower maximum never shortens a lease',
  ),
  extensionHours: whole(1, maxTtlHours).describe('Hours that one extension adds'),
  maxPerOwner: whole(1, 1_000).describe('Environments of one person or service key'),
  maxTotal: whole(1, 10_000).describe('Environments of all owners together'),
  maxServices: whole(1, maxServices).describe('Services of one Environment'),
  buildTimeoutMinutes: whole(1, 1_440).describe('A build that takes longer is ended'),
  sleepAfterMinutes: whole(0, 43_200).describe(
    'A service without requests for this long is stopped until the next one. 0: services stay on',
  ),
  grantMinutes: whole(5, 60).describe(
    'How long a browser may open an Environment that is not public before Postern checks the person again',
  ),
  allowedAccess: z
    .array(z.enum(accessKinds))
    .min(1)
    .refine((all) => new Set(all).size === all.length, 'must not repeat an access')
    .describe('Who may be allowed to open an Environment. Restricts new Environments and changes of access'),
  resources: z
    .strictObject({
      maxMilliCpu: whole(50, 64_000).describe('1,000 is one processor'),
      maxMemoryBytes: whole(32 * mib, 262_144 * mib),
    })
    .describe('Maximum of one process of a service. A service that names none gets the maximum'),
};

export const environmentPolicySchema = z
  .strictObject({
    ...forEveryone,
    maxConcurrentBuilds: whole(1, 100).describe('Builds that run at the same time, on all workers together'),
    logBytes: whole(1_024, 1_024 * mib).describe(
      'Bytes that are kept of the log of one build, or of one service. A line counts 32 more than its text',
    ),
    artifactBytesPerRepository: whole(mib, Number.MAX_SAFE_INTEGER).describe(
      'Built files that are kept to be used again; over it, unused ones are removed earlier',
    ),
  })
  .refine((policy) => policy.defaultTtlHours <= policy.maxTtlHours, {
    path: ['defaultTtlHours'],
    message: 'must not be more than maxTtlHours',
  })
  .refine((policy) => policy.extensionHours <= policy.maxTtlHours, {
    path: ['extensionHours'],
    message: 'must not be more than maxTtlHours',
  })
  .refine((policy) => policy.maxPerOwner <= policy.maxTotal, {
    path: ['maxPerOwner'],
    message: 'must not be more than maxTotal',
  })
  .meta({ id: 'EnvironmentPolicy' });

/** How the code of repositories is isolated from the machine that runs it. */
export const isolationSchema = z
  .strictObject({
    kind: z.enum(['process', 'bwrap', 'kubernetes']).describe('`process` isolates nothing'),
    isComplete: z
      .boolean()
      .describe(
        'False: code reaches this machine or other Environments, or the kernel does not limit its memory',
      ),
    message: z.string().describe('What it stops and what it does not stop, for people'),
  })
  .meta({ id: 'EnvironmentIsolation' });

export type IsolationInForce = z.infer<typeof isolationSchema>;

export const policyForEveryoneSchema = z.strictObject(forEveryone);

export type EnvironmentPolicy = z.infer<typeof environmentPolicySchema>;

export const defaultEnvironmentPolicy: EnvironmentPolicy = {
  enabled: false,
  defaultTtlHours: 72,
  maxTtlHours: 336,
  extensionHours: 24,
  maxPerOwner: 10,
  maxTotal: 200,
  maxServices: 20,
  maxConcurrentBuilds: 2,
  buildTimeoutMinutes: 30,
  logBytes: 10 * mib,
  artifactBytesPerRepository: 10_240 * mib,
  sleepAfterMinutes: 60,
  grantMinutes: 5,
  allowedAccess: ['owner', 'members'],
  resources: { maxMilliCpu: 1_000, maxMemoryBytes: 1_024 * mib },
};
