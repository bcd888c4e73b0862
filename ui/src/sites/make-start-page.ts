import { api, ApiProblem, unwrap } from '../api/client.ts';
import { sendContents } from './upload/send.ts';
import { sha256Of } from './upload/sha256.ts';
import { redirectsFile, rulesWith } from './upload/start-rule.ts';
import { tarOf } from './upload/tar.ts';

export type PublishedVersion = {
  readonly siteId: string;
  readonly number: number;
  readonly digest: string;
};

/**
 * Publishes the same files with a rule that leads the site's address to `page`. Only the rules are sent.
 * @throws ApiProblem
 */
export async function makeStartPage(
  { siteId, number, digest }: PublishedVersion,
  page: string,
): Promise<void> {
  const { signal } = new AbortController();
  const files = await filesOf(siteId, number);
  const rules = rulesWith(page, redirectsFile in files ? await contentOf(siteId, number, redirectsFile) : '');
  const sha256 = await sha256Of(rules, signal);
  const { data: upload } = await unwrap(
    api.POST('/sites/{id}/uploads', {
      params: { path: { id: siteId } },
      body: { files: { ...files, [redirectsFile]: { sha256, size: rules.size } } },
    }),
  );
  if (upload.missing.length > 0)
    await sendContents({
      method: 'PUT',
      address: `/sites/${encodeURIComponent(siteId)}/uploads/${encodeURIComponent(upload.id)}/blobs`,
      type: 'application/x-tar',
      body: tarOf([{ name: sha256, content: rules }]),
      signal,
      onBytes: () => undefined,
    });
  await unwrap(
    api.POST('/sites/{id}/uploads/{upload}/publish', {
      params: { path: { id: siteId, upload: upload.id }, header: { 'If-Match': `"${digest}"` } },
      body: {},
    }),
  );
}

async function filesOf(siteId: string, version: number) {
  const files: Record<string, { sha256: string; size: number }> = {};
  for (let page = 1, total = 1; page <= total; page += 1) {
    const query = { version: String(version), page, limit: 100 };
    const { data, metadata } = await unwrap(
      api.GET('/sites/{id}/files', { params: { path: { id: siteId }, query } }),
    );
    for (const { path, sha256, size } of data) files[path] = { sha256, size };
    total = metadata.pagination.total;
  }
  return files;
}

async function contentOf(siteId: string, version: number, path: string): Promise<Blob> {
  const response = await fetch(
    `/api/v2/sites/${encodeURIComponent(siteId)}/files/${encodeURIComponent(path)}?version=${version}`,
  );
  if (response.ok) return await response.blob();
  throw new ApiProblem({
    status: response.status,
    code: 'unexpected',
    message: `The file ${path} could not be read.`,
    hint: 'Try again. If the problem persists, contact your administrator.',
    requestId: response.headers.get('x-request-id'),
  });
}
