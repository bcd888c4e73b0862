import type { Schemas } from '../../api/contract.ts';
import { type Control, ifMatchOf, type Job, type Outcome } from './job.ts';
import { renamedPage, typeOf } from './picked.ts';
import { sendSite } from './send.ts';
import { tarGzOf } from './tar.ts';

/** An archive, a page, or a folder packed on the way, in one request. */
export async function publishWhole(job: Job, { signal, tell }: Control): Promise<Outcome> {
  const { picked, files } = job.checked;
  if (picked.kind === 'folder') tell({ kind: 'reading', done: 0, total: 1 });
  const body =
    picked.kind === 'folder'
      ? await tarGzOf(files.map(({ path, file }) => ({ name: path, content: file })))
      : picked.file;
  signal.throwIfAborted();
  const type =
    picked.kind === 'folder' ? 'application/gzip' : (typeOf(picked.file.name) ?? 'application/zip');
  const { target } = job;
  const site = await sendSite({
    ...(target.kind === 'new'
      ? { method: 'POST', address: `/sites${queryOf(target.request, job.isCheckOnly)}` }
      : {
          method: 'PUT',
          address: `/sites/${encodeURIComponent(target.siteId)}/content${queryOf({ spa: target.spa }, job.isCheckOnly)}`,
        }),
    type,
    body,
    ifMatch: ifMatchOf(job),
    signal,
    onBytes: (sent) =>
      tell(sent < body.size ? { kind: 'sending', sent, total: body.size } : { kind: 'processing' }),
  });
  return { site, warnings: site.warnings, contents: null, startPage: renamedPage(picked) };
}

function queryOf(request: Schemas['SiteCreate'], isCheckOnly: boolean): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request)) query.set(name, String(value));
  if (isCheckOnly) query.set('dryRun', 'true');
  return `?${query.toString()}`;
}
