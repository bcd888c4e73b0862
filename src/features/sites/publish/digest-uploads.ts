import { text } from 'node:stream/consumers';
import { LRUCache } from 'lru-cache';
import type { AuditContext, Caller } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import { newId } from '../../../core/ids.ts';
import type { Blob, BlobBatch } from '../../../platform/blobs/blobs.ts';
import type { FairQueue } from '../../../platform/fair-queue.ts';
import { ArchiveRefused } from '../content/archive.ts';
import { takeBlob } from '../content/receive-blob.ts';
import { judgeDeclared } from '../content/judge-declared.ts';
import { lookBudget } from '../content/key-scan.ts';
import type { ProblemText, UploadProblem } from '../content/judge.ts';
import { type Manifest, receiptOf } from '../content/manifest.ts';
import { rulesIn } from '../content/version-rules.ts';
import { readTar } from '../content/tar.ts';
import { limited } from '../content/whole-upload.ts';
import { warningsOf } from '../content/warnings.ts';
import { rejected, sizeOf } from './publishing.ts';
import { holdCredential, owned, requireCurrent, requireEnabled, requireOwner } from '../verbs/rights.ts';
import type { Site, SiteOwner } from '../site/site.ts';
import type { Received, Sites, UploadState } from '../verbs/site-verbs.ts';
import type { SitesDeps } from '../verbs/sites-deps.ts';
import type { SitesConfig } from '../site/sites-config.ts';
import {
  maxProblems,
  maxTarBytes,
  maxUnpublishedBytes,
  requireAnnouncedBytes,
} from '../content/upload-limits.ts';
import type { Reservation, UploadReservations } from './upload-reservations.ts';
import { type SiteUpload, uploadLivesMs } from '../stores/digest-upload-store.ts';

/**
 * Digest uploads (contract 6): a client announces the files of the new version, sends the missing contents, and
 * publishes. "Missing" is decided within one owner only: a client must never learn that another owner has a content
 * (threat T50).
 */
type Uploads = Pick<Sites, 'startUpload' | 'findUpload' | 'receiveBlob' | 'receiveBlobs' | 'publishUpload'>;

/** Maximum unpublished uploads of a site at the same time. One more ends the oldest. */
const maxOpen = 10;
/** Maximum announced files that are cached, across all uploads. */
const maxAnnounced = 100_000;
/** Number of contents of a tar that are marked as received together; the client need not send marked ones again. */
const marksAtOnce = 200;

type UploadsDeps = Pick<Sites, 'replace'> & {
  readonly reservations: UploadReservations;
  readonly queue: FairQueue;
};

export function uploads(deps: SitesDeps, { replace, reservations, queue }: UploadsDeps): Uploads {
  const { read, tx, config, blobs, format, clock, random } = deps;

  async function findSite(caller: Caller, siteId: string) {
    const settings = await requireEnabled(config);
    const now = clock.now();
    return { settings, site: requireCurrent(owned(caller, await read.sites.find(siteId), now), now) };
  }

  async function find(caller: Caller, siteId: string, id: string) {
    const { settings, site } = await findSite(caller, siteId);
    const upload = await read.uploads.find(siteId, id);
    if (upload === undefined || upload.endsAt <= clock.now())
      throw new AppError('not_found', {
        message: 'There is no such upload.',
        hint: 'It may have ended: an upload lasts 24 hours. Start a new upload.',
      });
    return { settings, site, upload };
  }

  async function findOpen(caller: Caller, siteId: string, id: string) {
    const found = await find(caller, siteId, id);
    if (found.upload.publishedAt !== null) throw over();
    return found;
  }

  const stateOf = async ({ id, endsAt, leftOut }: SiteUpload): Promise<UploadState> => ({
    id,
    endsAt,
    leftOut,
    missing: await read.uploads.missing(id),
  });

  /** The rules as they are now, not as they were when the upload began (UP-04). */
  const rulesNow = async () => {
    const { value } = await config.read();
    if (!value.enabled) throw new AppError('sites_disabled');
    return value;
  };

  /**
   * Bytes that were written during their removal are lost. Announced content is safe from the next removal on. This
   * check runs after the bytes have arrived, so a client that sends other bytes than announced does
   * not learn which contents exist (threat T50).
   */
  async function requireNotGone(digests: readonly string[], since: number): Promise<void> {
    if ((await read.content.goingAmong(digests, since)).length > 0) throw goingAway();
  }

  /** Receives one body of contents, with its own turn in the queue and a reservation for each content in it. */
  async function receiving<T>(
    caller: Caller,
    settings: SitesConfig,
    work: (reservation: Reservation) => Promise<T>,
  ): Promise<T> {
    const owner = requireOwner(caller);
    return await queue(`${owner.kind}:${owner.id}`, async () => {
      const reservation = reservations.reserve(owner, maxUnpublishedBytes(settings));
      try {
        return await work(reservation);
      } finally {
        reservation.release();
      }
    });
  }

  /** The files that each upload announced; they never change. `rules`: those under which the files were accepted. */
  const announcements = new LRUCache<string, { readonly files: Manifest; readonly rules: string }>({
    maxSize: maxAnnounced,
    sizeCalculation: ({ files }) => files.size + 1,
  });

  /** Judges an upload's files again if the rules have changed since they were accepted. */
  async function judgeAgain(id: string, rules: SitesConfig) {
    const known = announcements.get(id);
    if (known?.rules === rulesOf(rules)) return { sent: known.files, files: known.files, problems: [] };
    const sent = await read.uploads.files(id);
    // A key in a name was reported when the upload began, and the upload was refused.
    return { sent, ...(await judgeDeclared(sent, rules.upload, { format, onKey: () => undefined })) };
  }

  /** The paths of each announced content. */
  async function pathsIn(id: string): Promise<ReadonlyMap<string, readonly string[]>> {
    const paths = new Map<string, string[]>();
    for (const [path, { digest }] of await read.uploads.files(id)) {
      const known = paths.get(digest);
      if (known === undefined) paths.set(digest, [path]);
      else known.push(path);
    }
    return paths;
  }

  /**
   * An upload does not record the contents that need not be sent: they are most of it. A content that was removed
   * meanwhile, with the last version that held it, is requested now.
   */
  async function findMissing(
    owner: SiteOwner,
    site: Site,
    id: string,
    files: Manifest,
  ): Promise<Set<string>> {
    const expected = await read.uploads.expected(id);
    const rest = distinct(files).filter(({ digest }) => !expected.has(digest));
    const there = await keptOf(read, owner, site, rest);
    const gone = rest.filter(({ digest }) => !there.has(digest));
    if (gone.length > 0) {
      await tx(async (stores) => {
        // From now on, a decision about removals sees these contents.
        await stores.content.lockForUse();
        await stores.uploads.addMissing(id, gone);
      });
    }
    const waiting = [...expected.values()].filter(({ isReceived }) => !isReceived);
    return new Set([...waiting, ...gone].map(({ digest }) => digest));
  }

  const depsFor = (auditContext: AuditContext) => ({
    format,
    onKey: (value: string) => deps.exposed(value, auditContext),
  });

  return {
    async startUpload(caller, auditContext, siteId, { files: sent, spa }) {
      const { settings } = await findSite(caller, siteId);
      const { files, problems, leftOut } = await judgeDeclared(sent, settings.upload, depsFor(auditContext));
      if (problems.length > 0) throw rejected(problems);
      const now = clock.now();
      const upload: SiteUpload = {
        id: newId(random, 'upl'),
        siteId,
        spa: spa ?? null,
        leftOut,
        createdAt: now,
        endsAt: now + uploadLivesMs,
        publishedAt: null,
      };
      const missing = await tx(async (stores) => {
        await holdCredential(stores, caller, now);
        const owner = requireOwner(caller);
        await stores.content.lockForPublish(owner);
        const site = requireCurrent(owned(caller, await stores.sites.hold(siteId), now), now);
        await stores.uploads.endOldest(siteId, maxOpen - 1);
        const all = distinct(files);
        const there = await keptOf(stores, owner, site, all);
        const wrong = [...files].filter(([, { digest, size }]) => (there.get(digest) ?? size) !== size);
        if (wrong.length > 0) throw rejected(wrong.slice(0, maxProblems).map(([path]) => wrongSize(path)));
        const waiting = all.filter(({ digest }) => !there.has(digest));
        await stores.uploads.insert(upload, auditContext.actor.id, files, waiting);
        requireAnnouncedBytes(await stores.uploads.announcedBytes(owner), settings);
        return waiting.map(({ digest }) => digest).toSorted();
      });
      announcements.set(upload.id, { files, rules: rulesOf(settings) });
      return { id: upload.id, endsAt: upload.endsAt, missing, leftOut };
    },

    async findUpload(caller, siteId, id) {
      return await stateOf((await find(caller, siteId, id)).upload);
    },

    async receiveBlob(caller, auditContext, siteId, id, digest, { stream, reauthorize }) {
      const { settings } = await findOpen(caller, siteId, id);
      const wanted = await read.uploads.expectedAs(id, digest);
      if (wanted === undefined) {
        stream.destroy();
        // The client sent content that was not missing. It is not needed, but does no harm.
        if ((await pathsIn(id)).has(digest)) return;
        throw new AppError('not_found', {
          message: 'The upload did not announce any content with this SHA-256.',
          hint: 'Send the contents in the list missing, each under its SHA-256 in lower-case hexadecimal digits.',
        });
      }
      const since = clock.now();
      const problem = await receiving(caller, settings, async (reservation) => {
        reservation.take(wanted.size);
        const found = await takeBlob(stream, wanted, {
          ...depsFor(auditContext),
          budget: lookBudget(settings.upload.maxExtractedBytes),
          write: blobs.write,
        });
        if (found === undefined) reservation.awaitPublish([wanted]);
        return found;
      });
      if (problem !== undefined) throw rejected(problemOfEach(await pathsIn(id), digest, problem));
      await requireNotGone([digest], since);
      await reauthorize();
      await read.uploads.markReceived(id, [digest], clock.now());
    },

    async receiveBlobs(caller, auditContext, siteId, id, { stream, reauthorize }) {
      const { settings, upload } = await findOpen(caller, siteId, id);
      const budget = lookBudget(settings.upload.maxExtractedBytes);
      const expected = await read.uploads.expected(id);
      const announced = await pathsIn(id);
      const problems: UploadProblem[] = [];
      let taken: Blob[] = [];
      let since = clock.now();
      const mark = async (batch: BlobBatch, reservation: Reservation): Promise<void> => {
        if (taken.length === 0) return;
        await batch.flush();
        const [blobsTaken, begunAt] = [taken, since];
        [taken, since] = [[], clock.now()];
        reservation.awaitPublish(blobsTaken);
        const digests = blobsTaken.map(({ digest }) => digest);
        await requireNotGone(digests, begunAt);
        await reauthorize();
        await read.uploads.markReceived(id, digests, clock.now());
      };
      const takeAll = async (batch: BlobBatch, reservation: Reservation): Promise<void> => {
        const takeDeps = { ...depsFor(auditContext), budget, write: batch.write };
        const source = limited(stream, settings.upload);
        for await (const entry of readTar(source, maxTarBytes(settings.upload))) {
          if (entry.name.endsWith('/')) continue;
          const size = expected.get(entry.name)?.size;
          if (size === undefined && entry.problem === undefined && announced.has(entry.name)) continue;
          if (size !== undefined) reservation.take(size);
          const problem =
            entry.problem !== undefined
              ? ({ code: 'bad_entry', problem: entry.problem } as const)
              : size === undefined
                ? notAnnounced
                : await takeBlob(await entry.open(), { digest: entry.name, size }, takeDeps);
          if (problem === undefined) taken.push({ digest: entry.name, size: size ?? 0 });
          else if (problems.length < maxProblems)
            problems.push(...problemOfEach(announced, entry.name, problem));
          if (taken.length >= marksAtOnce) await mark(batch, reservation);
        }
      };
      await receiving(caller, settings, async (reservation) => {
        const batch = blobs.batch();
        try {
          await takeAll(batch, reservation);
        } catch (error) {
          if (!(error instanceof ArchiveRefused)) throw error;
          problems.push({ path: '', code: 'bad_archive', problem: error.message });
        } finally {
          // The client need not send again what arrived before the failure.
          try {
            await mark(batch, reservation);
          } finally {
            await batch.close();
          }
        }
      });
      if (problems.length > 0) throw rejected(problems.slice(0, maxProblems));
      return await stateOf(upload);
    },

    async publishUpload(caller, auditContext, siteId, id, { ifMatch, dryRun, ttlHours }) {
      const since = clock.now();
      const { upload, site } = await findOpen(caller, siteId, id);
      const rules = await rulesNow();
      const { sent, files, problems } = await judgeAgain(id, rules);
      const missing = await findMissing(requireOwner(caller), site, id, sent);
      const all = [...problems, ...missingFrom(sent, missing)];
      if (all.length > 0) throw rejected(all.slice(0, maxProblems));
      const found = await rulesIn(files, async (digest) => await text(await blobs.read(digest)));
      const warnings = await warningsOf(files, found);
      // Reading from the blob store may have taken long.
      if (rulesOf(await rulesNow()) !== rulesOf(rules)) throw changedMeanwhile();
      const received: Received = {
        files,
        sizeBytes: sizeOf(files),
        digest: receiptOf(files),
        warnings,
        leftOut: upload.leftOut,
        archive: null,
        since,
      };
      const after = await replace(caller, auditContext, siteId, received, {
        ifMatch,
        dryRun,
        ttlHours,
        judgedBy: rules,
        ...(upload.spa === null ? {} : { spa: upload.spa }),
        async alongside(stores) {
          if (!(await stores.uploads.finish(id, clock.now()))) throw over();
        },
      });
      return { site: after, files, warnings, leftOut: received.leftOut };
    },
  };
}

/**
 * Sizes of the `blobs` that the owner keeps. The content of the live version is kept, so only the rest is looked up:
 * usually a few of a thousand.
 */
async function keptOf(
  { sites, content }: Pick<SitesDeps['read'], 'sites' | 'content'>,
  owner: SiteOwner,
  { id, live }: Site,
  blobs: readonly Blob[],
): Promise<ReadonlyMap<string, number>> {
  const files = live === null ? undefined : await sites.manifestOf(id, live);
  const held = new Map([...(files?.values() ?? [])].map(({ digest, size }) => [digest, size]));
  const rest = blobs.filter(({ digest }) => !held.has(digest));
  const found = await content.keptBy(
    owner,
    rest.map(({ digest }) => digest),
  );
  return new Map([...held, ...found]);
}

function rulesOf({ upload }: SitesConfig): string {
  return JSON.stringify(upload);
}

/** Each content once. */
function distinct(files: Manifest): Blob[] {
  return [...new Map([...files.values()].map((blob) => [blob.digest, blob])).values()];
}

/** Repeats the problem of a content for every file that has it, because people know their files and not digests. */
function problemOfEach(
  paths: ReadonlyMap<string, readonly string[]>,
  name: string,
  problem: ProblemText,
): UploadProblem[] {
  const named = paths.get(name) ?? [name.slice(0, 200)];
  return named.slice(0, maxProblems).map((path) => ({ path, ...problem }));
}

const notAnnounced = {
  code: 'wrong_content',
  problem: 'must have a SHA-256 that this upload announced as its name',
} as const;

function wrongSize(path: string): UploadProblem {
  return {
    path,
    code: 'wrong_content',
    problem: 'has the SHA-256 of content that you already store, but another size',
  };
}

function missingFrom(files: Manifest, missing: ReadonlySet<string>): UploadProblem[] {
  return [...files]
    .filter(([, { digest }]) => missing.has(digest))
    .map(([path, { digest }]) => ({ path, code: 'missing', problem: `has not been sent; send ${digest}` }));
}

function over(): AppError {
  return new AppError('state_conflict', {
    message: 'This upload has ended.',
    hint: 'It was published, or newer uploads of the site replaced it. Start a new upload for the next version.',
  });
}

function changedMeanwhile(): AppError {
  return new AppError('state_conflict', {
    message: 'An administrator changed the Sites limits during this request.',
    hint: 'Nothing was published. Publish again; Postern then checks the new limits.',
  });
}

function goingAway(): AppError {
  return new AppError('store_unavailable', {
    message: 'Postern is removing unused copies of some of these files right now.',
    hint: 'Nothing was changed. Wait the number of seconds in Retry-After, then send the files again.',
  });
}
