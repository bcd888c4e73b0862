import { z } from 'zod';
import { branchName, plainText, timestampSchema } from '../../platform/schemas.ts';
import { repositoryName } from '../../features/environments/routes/configuration-schemas.ts';
import { environmentStatuses } from '../../features/environments/environment/environment.ts';
import type {
  createdSchema,
  deployQueuedSchema,
  extendedSchema,
} from '../../features/environments/routes/environment-schemas.ts';
import { siteStatuses } from '../../features/sites/site/site.ts';
import { buildId } from './build-tools.ts';
import { type Published, publishedSite, type Site, toSiteAfter } from './published-site.ts';
import { archiveOf, type InlineFile } from './inline-files.ts';
import { addressFor, existingSite, newSite } from './upload-offer.ts';
import { type Environment, environmentId, siteId } from './read-tools.ts';
import { defineTool, type Subject, type Tool } from './tool.ts';

/**
 * The tools that change something. Each names what it changes by its immutable id, never by a name, which may belong to another one meanwhile.
 */
const hours = z.number().int().min(1).max(8_760);
const serviceChoices = z
  .array(
    z.strictObject({
      name: z.string().max(40).describe('The name of a service in postern.yaml'),
      active: z.boolean().describe('False: it does not start, unless an active service requires it'),
    }),
  )
  .max(20)
  .optional();
const variables = z
  .record(z.string().max(100), z.string().max(8_192))
  .optional()
  .describe('Variables. They replace the variables of postern.yaml');
const access = z
  .enum(['owner', 'members'])
  .optional()
  .describe('Who may open it: `owner`, only the person; `members`, everyone who can sign in');

const visibility = z.enum(['public', 'private']);
const siteAfter = z.strictObject({
  id: z.string(),
  name: z.string(),
  visibility,
  status: z.enum(siteStatuses),
  url: z.string(),
  expiresAt: timestampSchema.nullable(),
});
const environmentAfter = z.strictObject({ id: z.string(), status: z.enum(environmentStatuses) });

const siteOf = ({ siteId: id }: { siteId: string }): Subject => ({
  operationId: 'getSite',
  params: { id },
  fields: ['id', 'name', 'visibility', 'status', 'spa', 'expiresAt', 'version', 'updatedAt'],
});
/** Omits the status: a new deploy does not change the version. */
const environmentOf = ({ environmentId: id }: { environmentId: string }): Subject => ({
  operationId: 'getEnvironment',
  params: { id },
  fields: ['id', 'uuid', 'branch', 'sha', 'access', 'deployEnabled', 'autoTrack', 'expiresAt'],
});

const manifestFile = z.strictObject({
  path: z.string().min(1).max(500).describe('From the root of the site, such as index.html'),
  size: z.number().int().min(0).max(1_000_000_000).describe('Bytes'),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 lower-case hexadecimal digits'),
});
const uploadAddress = z.strictObject({
  url: z.string().describe('Send one tar.gz or ZIP of exactly these files by PUT'),
  token: z.string().describe('For the header Authorization: Bearer. Works once; never show or store it'),
  expiresAt: timestampSchema,
});

/** By the time the person approves, the name may belong to another repository. */
const repositoryOf = ({ repository }: { repository: string }): Subject => {
  const [owner = '', name = ''] = repository.split('/');
  return { operationId: 'getRepository', params: { owner, name }, fields: ['id', 'cloneUrl'] };
};

const siteFile = z
  .strictObject({
    path: z.string().min(1).max(500).describe('From the root of the site, such as index.html'),
    content: z.string(),
    encoding: z.enum(['utf8', 'base64']).optional().describe('Default: utf8'),
  })
  .refine(
    ({ content, encoding }) => encoding !== 'base64' || /^[A-Za-z0-9+/]*={0,2}$/.test(content),
    'must be base64',
  );

/** Bytes of all files in a call, decoded. */
const maxInlineBytes = 204_800;

function sizeOf(files: readonly InlineFile[]): number {
  return files.reduce(
    (sum, { content, encoding }) => sum + Buffer.byteLength(content, encoding ?? 'utf8'),
    0,
  );
}

export const changeTools: readonly Tool[] = [
  defineTool({
    name: 'publish_site',
    title: 'Publish a site',
    description:
      'Publishes files as a new site, or as the complete new version of a site of the person. Either all files go live, or nothing changes. Send files of at most 200 KiB in total in the call. For more, send their manifest: the answer is an address to which you send them, once. Publishing for everyone may need the approval of the person.',
    effect: 'change',
    scope: 'sites:write',
    hides: ['files', 'manifest'],
    subject: ({ siteId: id }) => (id === undefined ? undefined : siteOf({ siteId: id })),
    async makesPublic({ siteId: id, visibility: asked }, { call }) {
      if (id === undefined) return asked === 'public';
      return (await call<Site>('getSite', { params: { id } })).data.visibility === 'public';
    },
    input: z
      .strictObject({
        siteId: siteId.optional().describe('Absent: a new site'),
        name: plainText(100).optional().describe('Name of a new site'),
        visibility: visibility.optional().describe('Visibility of a new site. Default: private'),
        spa: z.boolean().optional().describe('Serve index.html for paths without a file'),
        files: z.array(siteFile).min(1).max(200).optional().describe('Every file of the version'),
        manifest: z
          .array(manifestFile)
          .min(1)
          .max(2_000)
          .optional()
          .describe('Replaces files: every file of the version, which you upload later'),
      })
      .refine(
        (input) => input.siteId === undefined || (input.name ?? input.visibility) === undefined,
        'must have name and visibility for a new site only; update_site changes them',
      )
      .refine(
        ({ files, manifest }) => (files === undefined) !== (manifest === undefined),
        'must have either files or manifest',
      )
      .refine(
        ({ files = [] }) => sizeOf(files) <= maxInlineBytes,
        'must have files of at most 200 KiB together; send a manifest in place of files for more',
      )
      .refine(
        ({ manifest = [] }) => new Set(manifest.map(({ path }) => path)).size === manifest.length,
        'must name each path of the manifest once',
      ),
    output: z.strictObject({
      ...siteAfter.partial().shape,
      version: z.number().nullable().optional(),
      warnings: z.array(z.strictObject({ code: z.string(), message: z.string() })).optional(),
      upload: uploadAddress.optional().describe('Returned for a manifest, without the other fields'),
    }),
    stepOf: ({ upload }) => (upload === undefined ? null : 'upload_offered'),
    objectOf: ({ id }) => id,
    async run({ siteId: id, files, manifest, spa, ...created }, context) {
      if (files === undefined) {
        const target =
          id === undefined ? newSite(created) : await existingSite(id, context.person.id, context);
        return { upload: await addressFor(manifest ?? [], { ...target, spa: spa ?? null }, context) };
      }
      const { call } = context;
      const file = await archiveOf(files);
      const query = { spa: spa === undefined ? undefined : String(spa) };
      const { data } =
        id === undefined
          ? await call<Published>('createSite', {
              query: { ...query, name: created.name, visibility: created.visibility ?? 'private' },
              file,
            })
          : await call<Published>('replaceSiteContent', { params: { id }, query, file });
      return publishedSite(data);
    },
  }),
  defineTool({
    name: 'update_site',
    title: 'Rename a site or change who sees it',
    description:
      'Renames a site of the person, or makes it private or public. Making it public may need the approval of the person.',
    effect: 'change',
    scope: 'sites:write',
    isIdempotent: true,
    subject: siteOf,
    makesPublic: async ({ visibility: asked }) => asked === 'public',
    input: z.strictObject({
      siteId,
      name: plainText(100).optional(),
      visibility: visibility.optional().describe('`public`: everyone can read it. Its address changes'),
      spa: z.boolean().optional().describe('Serve index.html for paths without a file'),
    }),
    output: siteAfter,
    async run({ siteId: id, ...body }, { call }) {
      return toSiteAfter((await call<Site>('changeSite', { params: { id }, body })).data);
    },
  }),
  defineTool({
    name: 'extend_site',
    title: 'Extend the expiry of a site',
    description: 'Extends the expiry of a site of the person by the configured days.',
    effect: 'change',
    scope: 'sites:write',
    subject: siteOf,
    input: z.strictObject({ siteId }),
    output: siteAfter,
    async run(input, { call }) {
      return toSiteAfter((await call<Site>('extendSite', { params: { id: input.siteId } })).data);
    },
  }),
  defineTool({
    name: 'delete_site',
    title: 'Delete a site',
    description:
      'Deletes a site of the person. Postern stops serving it at once; the person can restore it for some days.',
    effect: 'destroy',
    scope: 'sites:write',
    subject: siteOf,
    input: z.strictObject({ siteId }),
    output: siteAfter,
    async run(input, { call }) {
      return toSiteAfter((await call<Site>('deleteSite', { params: { id: input.siteId } })).data);
    },
  }),
  defineTool({
    name: 'create_environment',
    title: 'Create an Environment',
    description:
      'Builds and runs a branch at its own addresses. Returns at once; then call wait_for_environment. If the answer was lost, repeat the call with the same idempotencyKey.',
    effect: 'change',
    scope: 'env:write',
    isIdempotent: true,
    hides: ['env'],
    subject: repositoryOf,
    input: z.strictObject({
      repository: repositoryName,
      branch: branchName,
      idempotencyKey: z
        .string()
        .min(8)
        .max(128)
        .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces'),
      sha: z.string().max(64).optional().describe('A commit of the branch; default: the newest'),
      ttlHours: hours.optional(),
      access,
      autoTrack: z.boolean().optional().describe('Deploy every new commit'),
      services: serviceChoices,
      env: variables,
    }),
    output: environmentAfter.extend({
      name: z.string(),
      expiresAt: timestampSchema,
      replayed: z.boolean().describe('True: an earlier call with this idempotencyKey created it'),
    }),
    objectOf: ({ id }) => id,
    async run(body, { call }) {
      const { data } = await call<z.infer<typeof createdSchema>>('createEnvironment', { body });
      return {
        id: data.id,
        status: data.status,
        name: data.uuid,
        expiresAt: data.expiresAt,
        replayed: data.replayed,
      };
    },
  }),
  defineTool({
    name: 'configure_environment',
    title: 'Change an Environment',
    description:
      'Changes the settings of an Environment. Access changes at once, everything else with the next deploy.',
    effect: 'change',
    scope: 'env:write',
    isIdempotent: true,
    hides: ['env'],
    subject: environmentOf,
    input: z.strictObject({
      environmentId,
      access,
      deployEnabled: z.boolean().optional().describe('False: paused'),
      autoTrack: z.boolean().optional(),
      services: serviceChoices,
      env: variables,
    }),
    output: environmentAfter,
    async run({ environmentId: id, ...body }, { call }) {
      const { data } = await call<Environment>('changeEnvironment', { params: { id }, body });
      return { id: data.id, status: data.status };
    },
  }),
  defineTool({
    name: 'deploy_environment',
    title: 'Deploy an Environment',
    description: 'Deploys the newest commit. A deploy that is under way ends as superseded.',
    effect: 'change',
    scope: 'env:write',
    subject: environmentOf,
    input: z.strictObject({ environmentId }),
    output: z.strictObject({ buildId: z.string() }),
    async run(input, { call }) {
      const params = { id: input.environmentId };
      const { data } = await call<z.infer<typeof deployQueuedSchema>>('deployEnvironment', { params });
      return { buildId: data.deployId };
    },
  }),
  defineTool({
    name: 'extend_environment',
    title: 'Extend the lease of an Environment',
    description: 'Adds hours to the end of the lease, at most to the maximum of the policy.',
    effect: 'change',
    scope: 'env:write',
    subject: environmentOf,
    input: z.strictObject({
      environmentId,
      hours: hours.optional().describe('Default: the extension of the policy'),
    }),
    output: z.strictObject({ expiresAt: timestampSchema }),
    async run({ environmentId: id, ...body }, { call }) {
      const { data } = await call<z.infer<typeof extendedSchema>>('extendEnvironment', {
        params: { id },
        body,
      });
      return { expiresAt: data.expiresAt };
    },
  }),
  defineTool({
    name: 'destroy_environment',
    title: 'Tear an Environment down',
    description: 'Stops an Environment and removes it with its databases. This cannot be undone.',
    effect: 'destroy',
    scope: 'env:write',
    subject: environmentOf,
    input: z.strictObject({ environmentId }),
    output: environmentAfter,
    async run(input, { call }) {
      await call('removeEnvironment', { params: { id: input.environmentId } });
      return { id: input.environmentId, status: 'tearing_down' as const };
    },
  }),
  defineTool({
    name: 'cancel_build',
    title: 'Cancel a build',
    description: 'Cancels a build that is under way. The deployed version is still served.',
    effect: 'change',
    scope: 'env:write',
    subject: ({ buildId: id }) => ({
      operationId: 'getBuild',
      params: { id },
      fields: ['id', 'environment'],
    }),
    input: z.strictObject({ buildId }),
    output: z.strictObject({ id: z.string(), status: z.literal('cancelled') }),
    async run(input, { call }) {
      await call('cancelBuild', { params: { id: input.buildId } });
      return { id: input.buildId, status: 'cancelled' as const };
    },
  }),
];
