import { z } from 'zod';
import { defineRoute, type Route, type RouteRequest } from '../../../platform/http.ts';
import type { TicketRequests } from './ticket-requests.ts';

const sentSchema = z
  .strictObject({
    digest: z.string().describe('SHA-256 of the archive, in hexadecimal digits'),
    size: z.int().describe('Of the archive, in bytes'),
    files: z.int().describe('Links included, folders not'),
    bytes: z.int().describe('Of the files together'),
  })
  .meta({ id: 'EnvironmentFiles' });

const shared = {
  path: '/environment-files',
  tag: 'Environments',
  policy: { callers: 'pod', identity: 'none' },
} as const;

/** Routes where pods fetch and send archives. The ticket identifies the archive; the URL does not. */
export function transferRoutes(requests: TicketRequests): Route[] {
  return [
    defineRoute({
      ...shared,
      method: 'GET',
      operationId: 'fetchEnvironmentFiles',
      summary: 'Fetch the archive of a ticket',
      description:
        'The source of a build, once, or the files of a service until its Environment is torn down. A tar.gz.',
      success: { status: 200, stream: ['application/gzip'] },
      async handle({ origin, header }) {
        const stream = await requests.open(origin, header('authorization'));
        return { stream, contentType: 'application/gzip', fileName: 'files.tar.gz' };
      },
    }),
    defineRoute({
      ...shared,
      method: 'PUT',
      operationId: 'sendEnvironmentFiles',
      summary: 'Send the output of a build',
      description:
        'A tar.gz of files, folders and links that stay inside, with every folder before what is in it. The ticket is used up with 201. Of two requests at once, one gets it.',
      uploads: ['application/gzip'],
      errors: ['upload_rejected', 'storage_full'],
      success: { status: 201, data: sentSchema },
      example: {
        data: {
          digest: '0f343b0931126a20f133d67c2b018a3b1e4a1c0f5d3a5b6a4f5f5f5a9c3d7e21',
          size: 48_213,
          files: 12,
          bytes: 181_044,
        },
      },
      async handle({ origin, header, upload }) {
        const left = upload?.left ?? AbortSignal.any([]);
        return { data: await requests.take(origin, header('authorization'), bytesOf(upload), left) };
      },
    }),
  ];
}

async function* bytesOf(
  upload: RouteRequest<unknown, unknown, unknown>['upload'],
): AsyncGenerator<Uint8Array> {
  if (upload === null) return;
  for await (const part of upload.parts()) if (part.kind === 'file') yield* part.stream;
}
