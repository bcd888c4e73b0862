import { text } from 'node:stream/consumers';
import { LRUCache } from 'lru-cache';
import type { Act, Caller } from '../../core/caller.ts';
import { day } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId } from '../../core/ids.ts';
import type { Blob, BlobBatch } from '../../platform/blobs/blobs.ts';
import type { Lane } from '../../platform/lane.ts';
import { ArchiveRefused } from './content/archive.ts';
import { takeBlob } from './content/blob.ts';
import { judgeDeclared } from './content/declared.ts';
import { lookBudget } from './content/key-scan.ts';
import type { UploadProblem } from './content/judge.ts';
import { type Manifest, receiptOf } from './content/manifest.ts';
import { ruleProblems } from './content/rules-check.ts';
import { readTar } from './content/tar.ts';
import { limited, mostUnpacked } from './content/upload.ts';
import { digestsOf, rejected, sizeOf } from './publishing.ts';
import { holdCredential, owned, requireCurrent, requireEnabled, requireOwner } from './rights.ts';
import type { Site, SiteOwner } from './site.ts';
import type { Sites, SitesDeps, UploadState } from './sites.ts';
import type { SitesConfig } from './sites-config.ts';
import type { Holding, UploadRoom } from './upload-room.ts';
import type { SiteUpload } from './upload-store.ts';

/**
 * Digest uploads (contract 6): a client says which files the new version has, sends the contents that are missing, and
 * publishes. What is missing is told within one owner only: that somebody else has it must never show (threat T50).
 */
type Uploads = Pick<Sites, 'startUpload' | 'findUpload' | 'receiveBlob' | 'receiveBlobs' | 'publishUpload'>;

const livesMs = day;
/** Of a site at the same time, unpublished. One more ends the oldest. */
const mostOpen = 10;
/** Files of uploads under way that are remembered, of all together. */
const mostAnnounced = 100_000;
/** Contents of a tar that are marked as received together: what breaks off later need not be sent again. */
const marksAtOnce = 200;

type UploadsDeps = Pick<Sites, 'replace'> & { readonly room: UploadRoom; readonly lane: Lane };

export function uploads(deps: SitesDeps, { replace, room, lane }: UploadsDeps): Uploads {
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
        hint: 'It may have ended: an upload lives for 24 hours. Start a new one.',
      });
    return { settings, site, upload };
  }

  async function findOpen(caller: Caller, siteId: string, id: string) {
    const found = await find(caller, siteId, id);
    if (found.upload.publishedAt !== null) throw over();
    return found;
  }

  const stateOf = async ({ id, endsAt }: SiteUpload): Promise<UploadState> => ({
    id,
    endsAt,
    missing: await read.uploads.missing(id),
  });

  /** As they are now, not as they were when the upload began (UP-04). */
  const rulesNow = async () => {
    const { value } = await config.read();
    if (!value.enabled) throw new AppError('sites_disabled');
    return value;
  };

  /**
   * Bytes that were being removed while they were written are gone again. Announced ones are safe from the next removal on.
   * Asked when they are there: who sends others than are announced does not learn what is kept (threat T50).
   */
  async function requireNotGone(digests: readonly string[], since: number): Promise<void> {
    if ((await read.content.goingAmong(digests, since)).length > 0) throw goingAway();
  }

  /** One body of contents, with a turn of its own, and with room for each content in it. */
  async function receiving<T>(
    caller: Caller,
    { upload, quotas }: SitesConfig,
    work: (holding: Holding) => Promise<T>,
  ): Promise<T> {
    const owner = requireOwner(caller);
    return await lane(`${owner.kind}:${owner.id}`, async () => {
      const holding = room.enter(owner, quotas.bytesPerOwner + upload.maxUploadBytes);
      try {
        return await work(holding);
      } finally {
        holding.leave();
      }
    });
  }

  /** What each upload announced; it never changes. `rules`: those it was found good by. */
  const announcements = new LRUCache<string, { readonly files: Manifest; readonly rules: string }>({
    maxSize: mostAnnounced,
    sizeCalculation: ({ files }) => files.size + 1,
  });

  /** Of an upload, once more when the rules are others than it was found good by. */
  async function judgeAgain(id: string, rules: SitesConfig) {
    const known = announcements.get(id);
    if (known?.rules === rulesOf(rules)) return { sent: known.files, files: known.files, problems: [] };
    const sent = await read.uploads.files(id);
    // A key in a name was told when the upload began, and refused.
    return { sent, ...(await judgeDeclared(sent, rules.upload, { format, onKey: () => undefined })) };
  }

  const announcedIn = async (id: string) => new Set(digestsOf(await read.uploads.files(id)));

  /**
   * Contents that need not be sent are not written down when an upload begins: they are most of it. One that went
   * meanwhile, with the last version that held it, is asked for now.
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
        // Whoever decides what is removed sees it from now on.
        await stores.content.lockForUse();
        await stores.uploads.addMissing(id, gone);
      });
    }
    const waiting = [...expected.values()].filter(({ isReceived }) => !isReceived);
    return new Set([...waiting, ...gone].map(({ digest }) => digest));
  }

  const depsFor = (act: Act) => ({ format, onKey: (value: string) => deps.exposed(value, act) });

  return {
    async startUpload(caller, act, siteId, { files: sent, spa }) {
      const { settings } = await findSite(caller, siteId);
      const { files, problems } = await judgeDeclared(sent, settings.upload, depsFor(act));
      if (problems.length > 0) throw rejected(problems);
      const now = clock.now();
      const upload: SiteUpload = {
        id: newId(random, 'upl'),
        siteId,
        spa: spa ?? null,
        createdAt: now,
        endsAt: now + livesMs,
        publishedAt: null,
      };
      const missing = await tx(async (stores) => {
        await holdCredential(stores, caller, now);
        const owner = requireOwner(caller);
        await stores.content.lockForPublish(owner);
        const site = requireCurrent(owned(caller, await stores.sites.hold(siteId), now), now);
        await stores.uploads.endOldest(siteId, mostOpen - 1);
        const all = distinct(files);
        const there = await keptOf(stores, owner, site, all);
        const wrong = [...files].filter(([, { digest, size }]) => (there.get(digest) ?? size) !== size);
        if (wrong.length > 0) throw rejected(wrong.slice(0, 100).map(([path]) => wrongSize(path)));
        const waiting = all.filter(({ digest }) => !there.has(digest));
        await stores.uploads.insert(upload, act.actor.id, files, waiting);
        requireRoomFor(await stores.uploads.announcedBytes(owner), settings);
        return waiting.map(({ digest }) => digest).toSorted();
      });
      announcements.set(upload.id, { files, rules: rulesOf(settings) });
      return { id: upload.id, endsAt: upload.endsAt, missing };
    },

    async findUpload(caller, siteId, id) {
      return await stateOf((await find(caller, siteId, id)).upload);
    },

    async receiveBlob(caller, act, siteId, id, digest, bytes, readmit) {
      const { settings } = await findOpen(caller, siteId, id);
      const wanted = await read.uploads.expectedAs(id, digest);
      if (wanted === undefined) {
        bytes.destroy();
        // Sent although it was there: not what was asked for, and no harm.
        if ((await announcedIn(id)).has(digest)) return;
        throw new AppError('not_found', {
          message: 'The upload announced no content with this SHA-256.',
          hint: 'Send what is listed as missing, under its SHA-256 in lower-case hexadecimal digits.',
        });
      }
      const since = clock.now();
      const problem = await receiving(caller, settings, async (holding) => {
        holding.take(wanted.size);
        const found = await takeBlob(bytes, wanted, {
          ...depsFor(act),
          budget: lookBudget(settings.upload.maxExtractedBytes),
          write: blobs.write,
        });
        if (found === undefined) holding.waits([wanted]);
        return found;
      });
      if (problem !== undefined) throw rejected([{ path: digest, ...problem }]);
      await requireNotGone([digest], since);
      await readmit();
      await read.uploads.markReceived(id, [digest], clock.now());
    },

    async receiveBlobs(caller, act, siteId, id, tar, readmit) {
      const { settings, upload } = await findOpen(caller, siteId, id);
      const budget = lookBudget(settings.upload.maxExtractedBytes);
      const expected = await read.uploads.expected(id);
      const announced = await announcedIn(id);
      const problems: UploadProblem[] = [];
      let taken: Blob[] = [];
      let since = clock.now();
      const mark = async (batch: BlobBatch, holding: Holding): Promise<void> => {
        if (taken.length === 0) return;
        await batch.flush();
        const [blobsTaken, begunAt] = [taken, since];
        [taken, since] = [[], clock.now()];
        holding.waits(blobsTaken);
        const digests = blobsTaken.map(({ digest }) => digest);
        await requireNotGone(digests, begunAt);
        await readmit();
        await read.uploads.markReceived(id, digests, clock.now());
      };
      const takeAll = async (batch: BlobBatch, holding: Holding): Promise<void> => {
        const takeDeps = { ...depsFor(act), budget, write: batch.write };
        const source = limited(tar, settings.upload.maxUploadBytes);
        for await (const entry of readTar(source, mostUnpacked(settings.upload))) {
          if (entry.name.endsWith('/')) continue;
          const size = expected.get(entry.name)?.size;
          if (size === undefined && entry.problem === undefined && announced.has(entry.name)) continue;
          if (size !== undefined) holding.take(size);
          const problem =
            entry.problem !== undefined
              ? ({ code: 'bad_entry', problem: entry.problem } as const)
              : size === undefined
                ? notAnnounced
                : await takeBlob(await entry.open(), { digest: entry.name, size }, takeDeps);
          if (problem === undefined) taken.push({ digest: entry.name, size: size ?? 0 });
          else if (problems.length < 100) problems.push({ path: entry.name.slice(0, 200), ...problem });
          if (taken.length >= marksAtOnce) await mark(batch, holding);
        }
      };
      await receiving(caller, settings, async (holding) => {
        const batch = blobs.batch();
        try {
          await takeAll(batch, holding);
        } catch (error) {
          if (!(error instanceof ArchiveRefused)) throw error;
          problems.push({ path: '', code: 'bad_archive', problem: error.message });
        } finally {
          // What came before a break need not be sent again.
          try {
            await mark(batch, holding);
          } finally {
            await batch.close();
          }
        }
      });
      if (problems.length > 0) throw rejected(problems);
      return await stateOf(upload);
    },

    async publishUpload(caller, act, siteId, id, { ifMatch, dryRun }) {
      const since = clock.now();
      const { upload, site } = await findOpen(caller, siteId, id);
      const rules = await rulesNow();
      const { sent, files, problems } = await judgeAgain(id, rules);
      const missing = await findMissing(requireOwner(caller), site, id, sent);
      const all = [...problems, ...missingFrom(sent, missing)];
      const textOf = async (digest: string) =>
        missing.has(digest) ? '' : await text(await blobs.read(digest));
      all.push(...(await ruleProblems(files, textOf)));
      if (all.length > 0) throw rejected(all.slice(0, 100));
      // The store of contents may have taken long to answer.
      if (rulesOf(await rulesNow()) !== rulesOf(rules)) throw changedMeanwhile();
      const received = { files, sizeBytes: sizeOf(files), digest: receiptOf(files), archive: null, since };
      return await replace(caller, act, siteId, received, {
        ifMatch,
        dryRun,
        judgedBy: rules,
        ...(upload.spa === null ? {} : { spa: upload.spa }),
        async alongside(stores) {
          if (!(await stores.uploads.finish(id, clock.now()))) throw over();
        },
      });
    },
  };
}

/**
 * Of `blobs` those the owner keeps, with their sizes. What the live version holds is kept, so only the rest is looked up:
 * mostly a few of a thousand.
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

const notAnnounced = {
  code: 'wrong_content',
  problem: 'is not named by a SHA-256 that this upload announced',
} as const;

function wrongSize(path: string): UploadProblem {
  return { path, code: 'wrong_content', problem: 'has the SHA-256 of content you keep but not its size' };
}

function missingFrom(files: Manifest, missing: ReadonlySet<string>): UploadProblem[] {
  return [...files]
    .filter(([, { digest }]) => missing.has(digest))
    .map(([path, { digest }]) => ({ path, code: 'missing', problem: `has not been sent; send ${digest}` }));
}

/** Announced content takes room while it waits, so it may not be more than what could be kept. */
function requireRoomFor(announced: number, { quotas: { bytesPerOwner } }: SitesConfig): void {
  if (announced <= bytesPerOwner) return;
  throw new AppError('quota_exceeded', {
    message: `Your uploads under way would hold ${announced} bytes; ${bytesPerOwner} are allowed.`,
    hint: 'Publish what is under way, or wait until it ends after 24 hours.',
    details: { quota: 'bytesPerOwner', limit: bytesPerOwner, needed: announced },
  });
}

function over(): AppError {
  return new AppError('state_conflict', {
    message: 'This upload is over.',
    hint: 'It was published, or newer ones of the site took its place. Start a new one for the next version.',
  });
}

function changedMeanwhile(): AppError {
  return new AppError('state_conflict', {
    message: 'The limits of Sites were changed at this moment.',
    hint: 'Nothing was published. Publish again: it is checked by the limits of now.',
  });
}

function goingAway(): AppError {
  return new AppError('store_unavailable', {
    message: 'Some of these files are being cleaned up at this moment.',
    hint: 'Nothing was changed. Send them again after the seconds in Retry-After.',
  });
}
