import { z } from 'zod';
import { defineRoute, type Route } from '../../../platform/http.ts';
import { idParams, plainText } from '../../../platform/schemas.ts';
import { byAdministrators } from '../../settings/settings.ts';
import { environmentFields } from '../../configuration-file/configuration-file.ts';
import { linkIcons, type MetadataLink, mistakeInLink } from './metadata-link.ts';
import { maxLinks, type MetadataLinks } from './metadata-links.ts';

const maxLinkLength = 2_000;

const fields = {
  text: plainText(100),
  icon: z.enum(linkIcons),
  link: plainText(maxLinkLength)
    .superRefine((link, context) => {
      const mistake = mistakeInLink(link);
      if (mistake !== null) context.addIssue({ code: 'custom', message: mistake });
    })
    .describe(
      `An http or https address. After its host it can contain \${environment.{${environmentFields.join(',')}}} and \${services.<name>.url}; the values are URL-encoded, except for the slash in the name of the repository. An Environment without that service does not show the link`,
    ),
  position: z
    .number()
    .int()
    .min(1)
    .max(maxLinks)
    .describe('The place in the list, from 1; beyond the last place: at the end'),
};

const inputSchema = z
  .strictObject({ ...fields, position: fields.position.optional() })
  .meta({ id: 'MetadataLinkRequest' });
const changeSchema = z.strictObject(fields).partial().meta({ id: 'MetadataLinkChange' });

const linksSchema = z
  .strictObject({
    links: z.array(
      z
        .strictObject({
          id: z.string(),
          text: z.string(),
          icon: z.enum(linkIcons),
          link: z.string().describe('The template, as it was written'),
          position: z.number().int(),
        })
        .meta({ id: 'MetadataLink' }),
    ),
  })
  .meta({ id: 'MetadataLinks' });

const fieldCodes = {
  text: 'config_invalid',
  icon: 'config_invalid',
  link: 'config_invalid',
  position: 'config_invalid',
} as const;

const exampleLink = {
  text: 'Source',
  icon: 'branch',
  link: 'https://git.example.com/${environment.repository}/tree/${environment.branch}',
} as const;
const exampleLinks = { links: [{ id: 'mdl_4cWn8xTq1Zs7LbRk0YpE', ...exampleLink, position: 1 }] };

const params = idParams('Id of the link', exampleLinks.links[0]?.id ?? '');
const tag = 'Metadata links';

export function metadataLinkRoutes(metadataLinks: MetadataLinks): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/config/metadata',
      operationId: 'listMetadataLinks',
      tag,
      summary: 'List the metadata links',
      description: 'Links for every Environment, in their order.',
      policy: byAdministrators,
      success: { status: 200, data: linksSchema },
      example: { data: exampleLinks },
      async handle() {
        return { data: toResponse(await metadataLinks.list()) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/config/metadata',
      operationId: 'addMetadataLink',
      tag,
      summary: 'Add a metadata link',
      description: `Without \`position\`, at the end. At most ${maxLinks} links. Returns all of them.`,
      policy: byAdministrators,
      body: inputSchema,
      fieldCodes,
      errors: ['quota_exceeded'],
      success: { status: 201, data: linksSchema },
      example: { body: exampleLink, data: exampleLinks },
      async handle({ auditContext, body }) {
        return { data: toResponse(await metadataLinks.add(auditContext, body)) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/config/metadata/{id}',
      operationId: 'changeMetadataLink',
      tag,
      summary: 'Change or move a metadata link',
      description: 'Fields that are not sent stay. Returns all links.',
      policy: byAdministrators,
      params,
      body: changeSchema,
      fieldCodes,
      errors: ['not_found'],
      success: { status: 200, data: linksSchema },
      example: { body: { position: 1 }, data: exampleLinks },
      async handle({ auditContext, params: { id }, body }) {
        return { data: toResponse(await metadataLinks.change(auditContext, id, body)) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/config/metadata/{id}',
      operationId: 'deleteMetadataLink',
      tag,
      summary: 'Delete a metadata link',
      policy: byAdministrators,
      params,
      errors: ['not_found'],
      success: { status: 204, empty: true },
      async handle({ auditContext, params: { id } }) {
        await metadataLinks.remove(auditContext, id);
        return { data: undefined };
      },
    }),
  ];
}

function toResponse(links: readonly MetadataLink[]) {
  return { links: links.map((link, at) => ({ ...link, position: at + 1 })) };
}
