import { createHash } from 'node:crypto';
import { basename, dirname, resolve } from 'node:path';
import { type Call, type CallerOptions, type OpenCaller, openCaller } from '../http/call.ts';
import { isConfirmed } from '../print/confirm.ts';
import { declined, Failure, wrongUsage } from '../core/failure.ts';
import { ofOtherHosts, untranslatedText, withLines } from '../import/host-files.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { type Session, waitAfterLoss } from '../http/send.ts';
import { type Batch, batchesOf, tarOf } from './batches.ts';
import { checkFiles } from './check.ts';
import { isPipeline, reportToActions } from './ci.ts';
import { filesOf, type HashedFile, hashed, leftOutText } from '../files/folder.ts';
import { outputFolder } from './output-folder.ts';
import { type Progress, progressOf, sizeText } from './progress.ts';
import { type ProjectFile, readProjectFile } from './project-file.ts';
import { readSiteFile, type SiteFile } from './site-file.ts';
import { findSite, type Site } from './find-site.ts';
import { unfinishedUpload } from './unfinished.ts';
import { fingerprintOf, onEachChange } from './watch-folder.ts';

/**
 * `postern deploy`: announces the files of a folder by their SHA-256, sends the contents that the server does not have
 * yet, and publishes. The server checks the whole announcement before a content is sent, and publishes all of it or
 * nothing.
 */
type DeployOptions = CallerOptions & {
  readonly site?: string;
  readonly name?: string;
  readonly siteFile?: string;
  /** In hours. */
  readonly expires?: number;
  readonly public?: boolean;
  readonly private?: boolean;
  readonly dryRun?: boolean;
  readonly watch?: boolean;
};

type Upload = { readonly id: string; readonly missing: readonly string[] };
type Sent = { files: number; bytes: number; requests: number };

/** @throws Failure */
export async function deploy(given: string | undefined, options: DeployOptions, io: Io): Promise<Result> {
  if (options.public && options.private) throw wrongUsage('--public and --private cannot be combined.');
  if (options.watch && options.dryRun) throw wrongUsage('--watch and --dry-run cannot be combined.');
  const caller = await openCaller(io, options);
  refuseOtherThanPublic(caller.session, options);
  const cwd = process.cwd();
  const project = await readProjectFile(cwd, caller.session.origin);
  const folder = await outputFolder(given, { cwd, named: project.folders }, io);
  const publish = async () => await publishFolder(folder, project, { options, io }, caller);
  return options.watch
    ? { data: null, items: onEachChange(() => fingerprintOf(folder), publish, caller.chatter) }
    : await publish();
}

async function publishFolder(
  folder: string,
  project: ProjectFile,
  { options, io }: { readonly options: DeployOptions; readonly io: Io },
  { session, call, chatter }: OpenCaller,
): Promise<Result> {
  const siteFile = await readSiteFile(folder, options.siteFile, session.origin);
  const known = options.site ?? (await rememberedSite(folder, project, siteFile, options, io));
  if (known === undefined && isPipeline(io))
    throw wrongUsage(
      'This pipeline names no site: each run would publish another one.',
      'Name the site: --site ID. Or run postern deploy on your machine once, and commit postern.site.json.',
    );
  const found = filesOf(folder);
  const { leftOut } = found;
  chatter.err(leftOutText(leftOut));
  if (found.files.length === 0 && found.unreadable.length === 0)
    throw new Failure('usage', 2, `${folder} has no file to publish.`, {
      hint: leftOut.length === 0 ? null : 'A rule left out each of its files.',
      details: leftOut.length === 0 ? null : { leftOut },
    });
  const others = await ofOtherHosts(folder);
  if (others.untranslated.length > 0)
    chatter.err(`${untranslatedText(others.names.join(' and '), others.untranslated)}\n`);
  const { files: local, remove } = await withLines(found.files, others.lines);
  try {
    const result = await publish(hashed(local), others.spa);
    const { names, spa, untranslated } = others;
    const translated = names.length === 0 ? {} : { translated: { files: names, spa, untranslated } };
    return { ...result, data: { ...Object(result.data), leftOut, ...translated } };
  } finally {
    await remove();
  }

  async function publish(files: readonly HashedFile[], spa: boolean): Promise<Result> {
    const word = /^([a-z][a-z0-9]*)_(?:pat|svc|fed)_/.exec(session.credential ?? '')?.[1] ?? 'app';
    const { ttl } = await checkFiles(files, { unreadable: found.unreadable, word, call });
    if (options.expires !== undefined && options.expires > ttl.maxHours)
      throw wrongUsage(`--expires is longer than the ${ttl.maxHours} hours that a site may have.`);
    const existing = known === undefined ? undefined : await findSite(known, call);
    if (existing !== undefined) refuseOtherVisibility(existing, options);
    if (existing === undefined && options.dryRun) return firstDryRun(files);
    const site = existing ?? (await createSite(options.name ?? nameFrom(folder, siteFile), options, call));
    if (!options.dryRun && (existing === undefined || known === siteFile.site))
      await siteFile.remember(site.id);
    try {
      return await publishTo(site, files, spa);
    } catch (error) {
      if (existing === undefined && isRefusal(error)) await removeAgain(site);
      throw error;
    }
  }

  /** Deletes the site that was created for files which the server then refused. */
  async function removeAgain({ id }: Site): Promise<void> {
    try {
      await call('DELETE', `/sites/${id}`);
      await siteFile.restore();
    } catch {
      // The refusal is what the person needs to read; the empty site can be deleted later.
      chatter.err(`The empty site stays: postern sites delete ${id}\n`);
    }
  }

  async function publishTo(site: Site, files: readonly HashedFile[], spa: boolean): Promise<Result> {
    const announced = Object.fromEntries(files.map(({ path, sha256, size }) => [path, { sha256, size }]));
    const value = { files: announced, ...(spa ? { spa } : {}) };
    const announcement = createHash('sha256').update(JSON.stringify(value)).digest('hex');
    const unfinished = unfinishedUpload(session.origin, site.id, io.env);
    const upload =
      (await unfinishedOf(site, await unfinished.find(announcement), call)) ??
      (await call<Upload>('POST', `/sites/${site.id}/uploads`, { kind: 'json', value }));
    if (options.dryRun) return dryRun(site, files, upload.missing);
    await unfinished.remember(announcement, upload.id);
    const sent = await sendMissing(`/sites/${site.id}/uploads/${upload.id}`, upload, files, {
      call,
      io: chatter,
    });
    const ttl =
      options.expires === undefined ? [] : [{ kind: 'json' as const, value: { ttlHours: options.expires } }];
    const live = await call<Site>('POST', `/sites/${site.id}/uploads/${upload.id}/publish`, ...ttl).catch(
      async (error: unknown) => {
        // Such as an upload that an earlier deploy published before its connection was lost.
        if (error instanceof Failure && error.exitCode === 6) await unfinished.forget();
        throw error;
      },
    );
    await unfinished.forget();

    await reportToActions({ site: live.id, version: live.version?.number ?? null, url: live.url }, io.env);
    const reused = reusedOf(files, sent);
    return {
      data: {
        site: live.id,
        version: live.version?.number ?? null,
        url: live.url,
        link: live.link,
        expiresAt: live.expiresAt,
        sent,
        reused,
      },
      text: `${live.visibility === 'private' ? live.link : live.url}\n`,
      hint: `Version ${live.version?.number} of ${live.name} is live${live.visibility === 'public' ? ' for everyone' : ''}: ${filesText(sent.files)} (${sizeText(sent.bytes)}) sent, ${filesText(reused.files)} reused.${expiryText(live)}`,
    };
  }
}

/**
 * The site of this folder by postern.yaml or postern.site.json; undefined = a new one. When they name other folders only,
 * it asks the person: another folder never replaces their sites. @throws Failure
 */
async function rememberedSite(
  folder: string,
  project: ProjectFile,
  { path, site: ofFile, others }: SiteFile,
  options: DeployOptions,
  io: Io,
): Promise<string | undefined> {
  const isOther = project.folders.length > 0 && !project.folders.some((name) => resolve(name) === folder);
  const ofProject = isOther ? undefined : project.site;
  if (ofProject !== undefined && project.folders.length > 1)
    throw wrongUsage(
      `postern.yaml names one site and the folders ${project.folders.join(', ')}.`,
      'Write the folder of the site in postern.yaml: site: { id: …, folder: … }',
    );
  if (ofProject !== undefined && ofFile !== undefined && ofProject !== ofFile)
    throw wrongUsage(
      `postern.yaml names the site ${ofProject}, and ${path} the site ${ofFile}.`,
      'Remove one of them, or name the site: --site SITE',
    );
  const known = ofProject ?? ofFile;
  if (known !== undefined || options.name !== undefined) return known;
  const sites = {
    ...(isOther && project.site ? { [project.folders.join(', ')]: project.site } : {}),
    ...others,
  };
  const found = Object.entries(sites).map(([name, site]) => `${name} has the site ${site}`);
  if (found.length === 0) return undefined;
  const hint = 'Name the site: --site SITE. Or create one, which --name NAME names.';
  const what = `${basename(folder)} has no site; ${found.join(', ')}.`;
  if (!io.canAsk) throw wrongUsage(what, hint);
  if (!(await isConfirmed(`${what} Create a new site?`, io))) throw declined(hint);
  return undefined;
}

/** The sites of a service key are public, so a deploy with one must have --public. @throws Failure of the code 2 */
function refuseOtherThanPublic({ credential }: Session, options: DeployOptions): void {
  if (options.public || !isServiceKey(credential)) return;
  throw wrongUsage(
    'The sites of a service key are public, and this deploy has no --public.',
    'Add --public. For a private site, publish with a personal key.',
  );
}

/** Whether the server refused the files. After any other failure the next deploy continues, and the publish may have been committed. */
function isRefusal(error: unknown): boolean {
  return error instanceof Failure && ['upload_rejected', 'credential_in_content'].includes(error.code);
}

function isServiceKey(credential: string | undefined): boolean {
  return /^[a-z][a-z0-9]*_(?:svc|fed)_/.test(credential ?? '');
}

function refuseOtherVisibility({ id, visibility }: Site, options: DeployOptions): void {
  const asked = askedVisibility(options);
  if (asked !== undefined && asked !== visibility)
    throw wrongUsage(
      `The site is ${visibility}.`,
      `Change it first, which changes its address: postern sites change ${id} --visibility ${asked}`,
    );
}

function askedVisibility(options: DeployOptions): 'public' | 'private' | undefined {
  if (options.public) return 'public';
  return options.private ? 'private' : undefined;
}

async function createSite(name: string, options: DeployOptions, call: Call): Promise<Site> {
  const visibility = askedVisibility(options);
  const value = { name, ...(visibility === undefined ? {} : { visibility }) };
  return await call<Site>('POST', '/sites', { kind: 'json', value });
}

function filesText(count: number): string {
  return count === 1 ? '1 file' : `${count} files`;
}

/** A sentence with the date of the expiry; --json has the exact time. */
function expiryText({ expiresAt }: Site): string {
  return expiresAt === null ? '' : ` It expires on ${expiresAt.slice(0, 10)}, unless you publish again.`;
}

/** The project's name rather than that of its output folder; with both where the project has more folders. */
function nameFrom(folder: string, { others }: SiteFile): string {
  const project = basename(dirname(folder));
  if (project === '') return basename(folder);
  return Object.keys(others).length === 0 ? project : `${project}-${basename(folder)}`;
}

/** Its state, if the upload that an earlier deploy began still exists. */
async function unfinishedOf(
  { id }: Site,
  upload: string | undefined,
  call: Call,
): Promise<Upload | undefined> {
  if (upload === undefined) return undefined;
  try {
    return await call<Upload>('GET', `/sites/${id}/uploads/${encodeURIComponent(upload)}`);
  } catch (error) {
    if (error instanceof Failure && (error.exitCode === 3 || error.exitCode === 6)) return undefined;
    throw error;
  }
}

/** Sends what is missing; after a lost connection it asks what is still missing, and continues. @throws Failure */
async function sendMissing(
  path: string,
  { missing }: Upload,
  files: readonly HashedFile[],
  { call, io }: { call: Call; io: Io },
): Promise<Sent> {
  const sent: Sent = { files: 0, bytes: 0, requests: 0 };
  const progress = progressOf(bytesOf(batchesOf(files, missing).flat()), io);
  let left = missing;
  try {
    for (let losses = 0; left.length > 0; ) {
      try {
        if (losses > 0) left = (await call<Upload>('GET', path)).missing;
        for (const batch of batchesOf(files, left)) {
          await sendBatch(path, batch, progress, call);
          sent.files += batch.length;
          sent.bytes += bytesOf(batch);
          sent.requests += 1;
          losses = 0;
        }
        left = [];
      } catch (error) {
        await waitAfterLoss(error, losses, io);
        losses += 1;
      }
    }
    return sent;
  } finally {
    progress.end();
  }
}

async function sendBatch(path: string, batch: Batch, progress: Progress, call: Call): Promise<void> {
  const [first, ...others] = batch;
  if (first !== undefined && others.length === 0) {
    const type = 'application/octet-stream';
    const onRead = (bytes: number) => progress.add(bytes);
    return await call('PUT', `${path}/blobs/${first.sha256}`, {
      kind: 'file',
      path: first.file,
      type,
      onRead,
    });
  }
  await call('PUT', `${path}/blobs`, { kind: 'bytes', type: 'application/x-tar', bytes: await tarOf(batch) });
  progress.add(bytesOf(batch));
}

/** The files were checked; there is no site yet that they could be compared with. */
function firstDryRun(files: readonly HashedFile[]): Result {
  return {
    data: { site: null, files: files.length, bytes: bytesOf(files) },
    hint: 'This is a dry run: it would create a site and send every file.',
  };
}

function dryRun({ id }: Site, files: readonly HashedFile[], missing: readonly string[]): Result {
  const would = batchesOf(files, missing);
  const sent = { files: would.flat().length, bytes: bytesOf(would.flat()), requests: would.length };
  return {
    data: { site: id, sent, reused: reusedOf(files, sent) },
    hint: 'This is a dry run: the server accepts these files; no content was sent, and nothing is published.',
  };
}

function reusedOf(files: readonly HashedFile[], sent: Omit<Sent, 'requests'>) {
  return { files: files.length - sent.files, bytes: bytesOf(files) - sent.bytes };
}

function bytesOf(files: readonly { readonly size: number }[]): number {
  return files.reduce((total, { size }) => total + size, 0);
}
