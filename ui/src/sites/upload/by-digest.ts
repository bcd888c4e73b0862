import { api, ApiProblem, dataOf, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { type Control, ifMatchOf, type Job, type Outcome } from './job.ts';
import type { PickedFile } from './picked.ts';
import { type Refused, refusedIn, together } from './refused.ts';
import { canGoOn, mayPass, pause, secondsAfter, sendContents } from './send.ts';
import { sha256Of, sha256OfText } from './sha256.ts';
import { tarOf } from './tar.ts';
import { forget, remember, type Unfinished, unfinished } from './unfinished.ts';

/**
 * A folder, by digest: announce every file, send the contents that the server lacks in batches, publish. A break costs
 * the batch that was under way; a reload too, when the same folder is chosen again.
 */
const batchBytes = 16 * 1024 * 1024;
const batchFiles = 500;
const maxFailures = 7;

export type Announced = Record<string, { sha256: string; size: number }>;

export async function publishByDigest(job: Job, files: Announced, control: Control): Promise<Outcome> {
  const contents = contentsOf(job.checked.files, files);
  const { own, upload } = await begin(job, files, control);
  const asked = upload.missing.length;
  try {
    await sendMissing(own.siteId, upload, contents, control);
    control.tell({ kind: 'processing' });
    const site = await publish(job, own.siteId, upload.id, control);
    forget(own);
    return {
      site,
      warnings: [],
      contents: { sent: asked, had: contents.files.size - asked },
      startPage: null,
    };
  } catch (error) {
    if (!canGoOn(error)) await abandon(own);
    throw error;
  }
}

/** Every file by its path, with the SHA-256 of its bytes. */
export async function announcementOf(
  files: readonly PickedFile[],
  bytes: number,
  { signal, tell }: Control,
): Promise<Announced> {
  const announced: Announced = {};
  let done = 0;
  for (const { path, file } of files) {
    signal.throwIfAborted();
    announced[path] = { sha256: await sha256Of(file, signal), size: file.size };
    done += file.size;
    tell({ kind: 'reading', done, total: bytes });
  }
  return announced;
}

/** Each content once, and the digest of each path. */
type Contents = {
  readonly files: ReadonlyMap<string, File>;
  readonly digests: ReadonlyMap<string, string>;
};

function contentsOf(picked: readonly PickedFile[], announced: Announced): Contents {
  const files = new Map<string, File>();
  const digests = new Map<string, string>();
  for (const { path, file } of picked) {
    const digest = announced[path]?.sha256 ?? '';
    files.set(digest, file);
    digests.set(path, digest);
  }
  return { files, digests };
}

type Begun = { readonly own: Unfinished; readonly upload: Schemas['Upload'] };

async function begin(job: Job, files: Announced, { signal }: Control): Promise<Begun> {
  const announced = digestOf(files);
  const earlier = await goOn(job, announced, signal);
  if (earlier !== null) return earlier;
  const { target } = job;
  const isNew = target.kind === 'new';
  const siteId = isNew
    ? (await dataOf(api.POST('/sites', { body: target.request, signal }))).id
    : target.siteId;
  try {
    const body = { files, ...(isNew ? {} : { spa: target.spa }) };
    const { data: upload } = await unwrap(
      api.POST('/sites/{id}/uploads', { params: { path: { id: siteId } }, body, signal }),
    );
    const name = job.checked.picked.name;
    const own = { siteId, uploadId: upload.id, announced, name, isNew };
    remember(own);
    return { own, upload };
  } catch (error) {
    if (isNew) await takeBack(siteId);
    throw error;
  }
}

/** The upload that a reload or a lost connection interrupted, if it has the same files and still exists. */
async function goOn({ target }: Job, announced: string, signal: AbortSignal): Promise<Begun | null> {
  const own = unfinished().find(
    (one) =>
      one.announced === announced && (target.kind === 'new' ? one.isNew : one.siteId === target.siteId),
  );
  if (own === undefined) return null;
  const params = { path: { id: own.siteId, upload: own.uploadId } };
  try {
    const { data: upload } = await unwrap(api.GET('/sites/{id}/uploads/{upload}', { params, signal }));
    return { own, upload };
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.status === 401 || mayPass(error)) throw error;
    forget(own);
    return null;
  }
}

/** Continues after a refused content, so that all refused ones are reported together. */
async function sendMissing(
  siteId: string,
  { id, missing: asked }: Schemas['Upload'],
  contents: Contents,
  { signal, tell }: Control,
): Promise<void> {
  const sizeOf = (digests: readonly string[]) =>
    digests.reduce((sum, digest) => sum + (contents.files.get(digest)?.size ?? 0), 0);
  const total = sizeOf(asked);
  const params = { path: { id: siteId, upload: id } };
  const refused: Refused[] = [];
  const bad = new Set<string>();
  let lastRefusal: ApiProblem | undefined;
  let missing = asked;
  let failures = 0;
  while (missing.length > 0) {
    const there = total - sizeOf(missing);
    let shown = there;
    tell({ kind: 'sending', sent: there, total });
    try {
      if (failures > 0 || lastRefusal !== undefined) {
        const { data } = await unwrap(api.GET('/sites/{id}/uploads/{upload}', { params, signal }));
        const left = data.missing.filter((digest) => !bad.has(digest));
        if (left.length < missing.length) failures = 0;
        missing = left;
        if (missing.length === 0) break;
      }
      // A proxy may have refused the size, so smaller batches may succeed.
      const batch = batchFrom(missing, contents, batchBytes / 2 ** failures);
      const upload = await sendContents({
        method: 'PUT',
        address: `/sites/${encodeURIComponent(siteId)}/uploads/${encodeURIComponent(id)}/blobs`,
        type: 'application/x-tar',
        body: tarOf(
          batch.map((digest) => ({ name: digest, content: contents.files.get(digest) ?? new Blob() })),
        ),
        signal,
        onBytes: (sent) => {
          shown = Math.min(total, there + sent);
          tell({ kind: 'sending', sent: shown, total });
        },
      });
      missing = upload.missing.filter((digest) => !bad.has(digest));
      failures = 0;
    } catch (error) {
      const found = refusedIn(error);
      // Otherwise the problem is not in the files, and sending the others is useless.
      const isOfFiles = found.length > 0 && found.every(({ path }) => contents.digests.has(path));
      if (error instanceof ApiProblem && isOfFiles) {
        lastRefusal = error;
        refused.push(...found);
        for (const { path } of found) bad.add(contents.digests.get(path) ?? '');
        missing = missing.filter((digest) => !bad.has(digest));
        continue;
      }
      failures += 1;
      if (!mayPass(error) || failures > maxFailures) throw error;
      await waitAfter(error, failures, { sent: shown, total }, { signal, tell });
    }
  }
  if (lastRefusal !== undefined) throw together(lastRefusal, refused);
}

type Share = { readonly sent: number; readonly total: number };

/** The progress so far stays visible. */
async function waitAfter(error: ApiProblem, failures: number, at: Share, { signal, tell }: Control) {
  const seconds = secondsAfter(error, failures);
  tell({ kind: 'waiting', seconds, because: error.message, ...at });
  await pause(seconds, signal);
}

/** At least one, and as many more as fit. */
function batchFrom(missing: readonly string[], contents: Contents, most: number): string[] {
  const batch: string[] = [];
  let bytes = 0;
  for (const digest of missing) {
    const size = contents.files.get(digest)?.size ?? 0;
    if (batch.length > 0 && (bytes + size > most || batch.length >= batchFiles)) break;
    batch.push(digest);
    bytes += size;
  }
  return batch;
}

async function publish(
  job: Job,
  siteId: string,
  id: string,
  { signal, tell }: Control,
): Promise<Schemas['Site']> {
  const ifMatch = ifMatchOf(job);
  const header = ifMatch === undefined ? {} : { 'If-Match': ifMatch };
  const params = { path: { id: siteId, upload: id }, header };
  for (let failures = 0; ; ) {
    try {
      return await dataOf(api.POST('/sites/{id}/uploads/{upload}/publish', { params, body: {}, signal }));
    } catch (error) {
      // An earlier attempt had succeeded, but its response was lost.
      if (failures > 0 && error instanceof ApiProblem && error.code === 'state_conflict')
        return await dataOf(api.GET('/sites/{id}', { params: { path: { id: siteId } }, signal }));
      failures += 1;
      if (!mayPass(error) || failures > maxFailures) throw error;
      await waitAfter(error, failures, { sent: 1, total: 1 }, { signal, tell });
      tell({ kind: 'processing' });
    }
  }
}

function digestOf(files: Announced): string {
  const lines = Object.entries(files).map(([path, { sha256 }]) => `${sha256}  ${path}\n`);
  return sha256OfText(lines.sort().join(''));
}

/** Discards the upload: forgets it, and deletes the empty site that was created for it. Other uploads are unchanged. */
export async function abandon(own: Unfinished): Promise<void> {
  forget(own);
  if (own.isNew) await takeBack(own.siteId);
}

/** Deletes a site that was created for an abandoned upload. A failure is ignored, because the site is empty. */
async function takeBack(siteId: string): Promise<void> {
  await unwrap(api.DELETE('/sites/{id}', { params: { path: { id: siteId } } })).catch(() => undefined);
}
