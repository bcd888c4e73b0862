import { isSameOwner } from '../../core/caller.ts';
import { timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { containsKey } from '../../core/key-shape.ts';
import type { UploadOffer } from '../../features/agents/mcp-upload-store.ts';
import { receiptOf } from '../../features/sites/content/manifest.ts';
import type { Site } from './published-site.ts';
import type { ToolContext } from './tool.ts';

/** The upload address of `publish_site`: for exactly these files, this site and this version of it. */
export type UploadTarget = Pick<UploadOffer, 'siteId' | 'name' | 'visibility' | 'replaces'>;

type ManifestFile = { readonly path: string; readonly size: number; readonly sha256: string };

export function newSite(asked: {
  readonly name?: string | undefined;
  readonly visibility?: UploadTarget['visibility'] | undefined;
}): UploadTarget {
  return {
    siteId: null,
    name: asked.name ?? null,
    visibility: asked.visibility ?? 'private',
    replaces: null,
  };
}

/** The current state of the site. The upload publishes only while its visibility and its live version stay. */
export async function existingSite(
  id: string,
  userId: string,
  { call }: Pick<ToolContext, 'call'>,
): Promise<UploadTarget> {
  const { data } = await call<Site>('getSite', { params: { id } });
  // The route that publishes also checks this, but only after a useless upload.
  if (!isSameOwner({ kind: 'user', id: userId }, data.owner)) throw new AppError('not_owner');
  return { siteId: id, name: null, visibility: data.visibility, replaces: data.version?.digest ?? null };
}

export async function addressFor(
  files: readonly ManifestFile[],
  target: UploadTarget & Pick<UploadOffer, 'spa'>,
  { offerUpload, approvalId }: Pick<ToolContext, 'offerUpload' | 'approvalId'>,
) {
  if (files.some(({ path }) => containsKey(path)))
    throw new AppError('invalid_body', { message: 'manifest: must not contain an API key' });
  const manifest = new Map(files.map(({ path, size, sha256 }) => [path, { digest: sha256, size }]));
  const { url, token, expiresAt } = await offerUpload({
    ...target,
    approvalId,
    receipt: receiptOf(manifest),
    fileCount: files.length,
    sizeBytes: files.reduce((sum, { size }) => sum + size, 0),
  });
  return { url, token, expiresAt: timestamp(expiresAt) };
}
