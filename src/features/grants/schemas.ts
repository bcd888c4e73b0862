import { z } from 'zod';
import { timestampSchema } from '../../platform/schemas.ts';
import { checkNames } from './explaining.ts';

/** The response of `GET /sites/{id}/access`: whether the site opens for its owner, and the browser grants. */
export const accessSchema = z
  .strictObject({
    opens: z.boolean().describe('Whether the site opens for you now: true when every check passed'),
    link: z.string().describe('The link to open; a browser without a grant starts there'),
    checks: z.array(z.strictObject({ check: z.enum(checkNames), passed: z.boolean(), detail: z.string() })),
    grants: z
      .array(
        z.strictObject({
          id: z.string(),
          issuedAt: timestampSchema,
          endsAt: timestampSchema.describe(
            'The latest time; a change of visibility, DELETE …/grants or switching Sites off ends the grant immediately',
          ),
          status: z.enum(['live', 'ended']),
          address: z.string().nullable(),
          agent: z.string().nullable().describe('The User-Agent of the browser'),
        }),
      )
      .describe('Every browser that got access within 30 days, newest first'),
  })
  .meta({ id: 'SiteAccess' });

export const grantsEndedSchema = z
  .strictObject({ id: z.string(), endedAt: timestampSchema })
  .meta({ id: 'SiteGrantsEnded' });
