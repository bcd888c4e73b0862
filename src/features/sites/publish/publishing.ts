import type { AuditContext, Caller } from '../../../core/caller.ts';
import { day, minute, timestampOrNull } from '../../../core/clock.ts';
import { AppError } from '../../../core/errors.ts';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { FairQueue } from '../../../platform/fair-queue.ts';
import { type Manifest, receiptOf } from '../content/manifest.ts';
import { keyInNameProblems, type UploadProblem } from '../content/judge.ts';
import { lookBudget } from '../content/key-scan.ts';
import { takeUpload } from '../content/whole-upload.ts';
import { begun, overWithout } from '../content/reference-counts.ts';
import { generateLabel, generateSiteId } from '../site/labels.ts';
import { expiryAfterPublish, firstExpiry } from '../site/lifetime.ts';
import {
  limitProblems,
  maxUnpublishedBytes,
  requireStoredBytes,
  requireUploadBytes,
} from '../content/upload-limits.ts';
import { chooseVisibility } from '../site/visibility.ts';
import {
  holdCredential,
  owned,
  requireCurrent,
  requireEnabled,
  requireOwner,
  requireQuota,
  requireVersionMatch,
} from '../verbs/rights.ts';
import type { Site, SiteOwner, SiteVersion } from '../site/site.ts';
import type { UploadReservations } from './upload-reservations.ts';
import type { Received, Sites, Upload } from '../verbs/site-verbs.ts';
import type { SitesDeps, SiteStores } from '../verbs/sites-deps.ts';
import type { SitesConfig } from '../site/sites-config.ts';

/** Content becomes a version, and a version goes live, in one short transaction after all bytes are stored (contract 6). */
type Publishing = Pick<Sites, 'mayPublish' | 'receive' | 'create' | 'replace' | 'publishVersion' | 'preview'>;

const previewMs = day;
/** Maximum previews of one site in any 24 hours. */
const maxPreviewsADay = 100;

export function publishing(
  deps: SitesDeps,
  { reservations, queue }: { reservations: UploadReservations; queue: FairQueue },
): Publishing {
  const { read, tx, config, blobs, temporaryFiles, format, clock, random, states } = deps;

  async function spread(site: Site): Promise<Site> {
    await states.publish(site);
    return site;
  }

  /** The configuration as it is now, not as it was when the upload began (UP-04). */
  async function configAtCommit(received: Received | null): Promise<SitesConfig> {
    const { value } = await config.read();
    if (!value.enabled) throw new AppError('sites_disabled');
    if (received !== null) requireWithin(value, received);
    return value;
  }

  /** Reads the clock again, because the caller may have waited since it last did. */
  function currentOf(caller: Caller, site: Site | undefined): Site {
    const now = clock.now();
    return requireCurrent(owned(caller, site, now), now);
  }

  async function receiveFrom(
    owner: SiteOwner,
    auditContext: AuditContext,
    upload: Upload,
    settings: SitesConfig,
  ): Promise<Received> {
    const { upload: rules } = settings;
    const reservation = reservations.reserve(owner, maxUnpublishedBytes(settings));
    const onKey = (value: string) => deps.exposed(value, auditContext);
    const onBytes = reservation.take;
    const since = clock.now();
    const budget = lookBudget(rules.maxExtractedBytes);
    const { left } = upload;
    try {
      const named = keyInNameProblems(upload.fileName, { format, onKey });
      const taken = await takeUpload(upload, rules, {
        blobs,
        temporaryFiles,
        format,
        onKey,
        onBytes,
        budget,
        left,
      });
      const { files, entries, problems, warnings, leftOut, sentBytes } = taken;
      // An upload refused only because of its name is on the disk too.
      if (problems.length === 0) reservation.awaitPublish(await notKept(owner, files));
      if (named.length + problems.length > 0) throw rejected([...named, ...problems]);
      const archive = { entries, bytes: sentBytes };
      const [sizeBytes, digest] = [sizeOf(files), receiptOf(files)];
      return { files, sizeBytes, digest, warnings, leftOut, archive, since };
    } finally {
      reservation.release();
    }
  }

  async function notKept(owner: SiteOwner, files: Manifest): Promise<Blob[]> {
    const kept = await read.content.keptBy(owner, digestsOf(files));
    return [...files.values()].filter(({ digest }) => !kept.has(digest));
  }

  return {
    async mayPublish(caller, id) {
      await requireEnabled(config);
      currentOf(caller, await read.sites.find(id));
    },

    async receive(caller, auditContext, upload) {
      const settings = await requireEnabled(config);
      const owner = requireOwner(caller);
      return await queue(`${owner.kind}:${owner.id}`, () =>
        receiveFrom(owner, auditContext, upload, settings),
      );
    },

    async create(caller, auditContext, request, received, dryRun = false) {
      const owner = requireOwner(caller);
      const settings = await configAtCommit(received);
      const visibility = chooseVisibility(
        caller,
        settings,
        deps.privateUnavailableReason(),
        request.visibility,
      );
      const now = clock.now();
      const id = generateSiteId(random);
      const site: Site = {
        id,
        name: request.name ?? `site ${id}`,
        owner,
        visibility,
        label: generateLabel(random, visibility),
        spa: request.spa ?? false,
        epoch: 1,
        revision: 1,
        createdAt: now,
        updatedAt: now,
        expiresAt: firstExpiry(settings, request.ttlHours, now),
        deletedAt: null,
        restorableUntil: null,
        takenDownAt: null,
        takeDownReason: null,
        putBackAt: null,
        live: null,
      };
      const created = await undoneWhen(dryRun, tx, async (stores) => {
        await holdCredential(stores, caller, clock.now());
        if (received !== null) await stores.content.lockForPublish(owner);
        await requireQuota(stores, owner, settings);
        await stores.sites.insert(site);
        await stores.sites.addLabel({
          label: site.label,
          siteId: id,
          version: null,
          mintedAt: now,
          endsAt: null,
        });
        const version = received && (await addVersion(stores, site, received, auditContext, now, settings));
        await stores.audit.append({
          event: 'site.created',
          auditContext,
          target: { kind: 'site', id },
          outcome: 'success',
          details: {
            after: siteFacts(site),
            ...(version === null ? {} : { version: versionFacts(version) }),
          },
        });
        await stores.changes.publish({ topic: 'site', subject: id });
        return await mustFind(stores, id);
      });
      if (dryRun) return created;
      if (received !== null) reservations.publish(owner, digestsOf(received.files));
      return await spread(created);
    },

    async replace(caller, auditContext, id, received, options) {
      const { ifMatch, spa, ttlHours, dryRun = false, alongside, judgedBy } = options;
      const settings = judgedBy ?? (await configAtCommit(received));
      const now = clock.now();
      const after = await undoneWhen(dryRun, tx, async (stores) => {
        await holdCredential(stores, caller, clock.now());
        const owner = requireOwner(caller);
        await stores.content.lockForPublish(owner);
        const site = currentOf(caller, await stores.sites.hold(id));
        requireVersionMatch(site, ifMatch);
        const expiresAt = expiryAfterPublish(site, settings, ttlHours, now);
        if ((spa !== undefined && spa !== site.spa) || expiresAt !== site.expiresAt)
          await stores.sites.update({ ...site, spa: spa ?? site.spa, expiresAt, updatedAt: now });
        await alongside?.(stores);
        const version = await addVersion(stores, site, received, auditContext, now, settings);
        return await goneLive(stores, 'site.published', auditContext, site, version);
      });
      if (dryRun) return after;
      reservations.publish(requireOwner(caller), digestsOf(received.files));
      return await spread(after);
    },

    async publishVersion(caller, auditContext, id, number, ifMatch) {
      const settings = await requireEnabled(config);
      const now = clock.now();
      const after = await tx(async (stores) => {
        await holdCredential(stores, caller, clock.now());
        const site = currentOf(caller, await stores.sites.hold(id));
        requireVersionMatch(site, ifMatch);
        const version = await stores.sites.findVersion(id, number);
        if (version === undefined)
          throw new AppError('not_found', {
            message: `The site has no version ${number}.`,
            hint: 'List its versions. Postern keeps the configured number of versions and removes older ones.',
          });
        if (site.live?.number === number) return site;
        const expiresAt = expiryAfterPublish(site, settings, undefined, now);
        if (expiresAt !== site.expiresAt) await stores.sites.update({ ...site, expiresAt, updatedAt: now });
        await stores.sites.setLive(id, number, now);
        const isBack = site.live !== null && number < site.live.number;
        return await goneLive(
          stores,
          isBack ? 'site.rolled_back' : 'site.published',
          auditContext,
          site,
          version,
        );
      });
      return await spread(after);
    },

    async preview(caller, auditContext, id, number) {
      await requireEnabled(config);
      const now = clock.now();
      return await tx(async (stores) => {
        await holdCredential(stores, caller, clock.now());
        const site = currentOf(caller, await stores.sites.hold(id));
        if ((await stores.sites.findVersion(id, number)) === undefined)
          throw new AppError('not_found', { message: `The site has no version ${number}.` });
        const nth = await stores.previews.nthNewestAt(id, maxPreviewsADay);
        if (nth !== undefined && nth > now - day) {
          throw new AppError('rate_limited', {
            message: `A site can have at most ${maxPreviewsADay} previews a day.`,
            hint: 'Use an existing preview, which lasts 24 hours, or wait the number of seconds in Retry-After.',
            retryAfterSeconds: (nth + day - now) / 1000,
          });
        }
        const label = generateLabel(random, site.visibility);
        const endsAt = now + previewMs;
        await stores.sites.addLabel({ label, siteId: id, version: number, mintedAt: now, endsAt });
        await stores.audit.append({
          event: 'site.previewed',
          auditContext,
          target: { kind: 'site', id },
          outcome: 'success',
          details: { version: number, endsAt: new Date(endsAt).toISOString() },
        });
        return { label, endsAt };
      });
    },
  };

  /** The caller has called lockForPublish(). */
  async function addVersion(
    stores: SiteStores,
    site: Site,
    received: Received,
    auditContext: AuditContext,
    now: number,
    settings: SitesConfig,
  ): Promise<SiteVersion> {
    const { number, newest } = await stores.sites.takeVersionNumber(site.id);
    const version: SiteVersion = {
      number,
      digest: received.digest,
      fileCount: received.files.size,
      sizeBytes: received.sizeBytes,
      createdAt: now,
      createdBy: auditContext.actor.id,
      publishedAt: now,
      replacedAt: null,
    };
    const before = newest && (await stores.sites.manifestOf(site.id, newest));
    const fresh = begun(before, received.files);
    await stores.sites.insertVersion(site.id, version, received);
    await stores.content.keep(site.owner, fresh);
    // The previous version still needs its content, so that content cannot be under removal.
    const going = await stores.content.goingAmong(
      fresh.map(({ digest }) => digest),
      received.since,
    );
    if (going.length > 0) {
      throw new AppError('store_unavailable', {
        message: 'Postern is removing unused copies of some of these files right now.',
        hint: 'Nothing was changed. Wait the number of seconds in Retry-After, then upload again.',
      });
    }
    await stores.sites.setLive(site.id, version.number, now);
    await dropSurplus(stores, site, settings, now);
    requireStoredBytes(await stores.content.bytesOf(site.owner), settings);
    return version;
  }
}

/** Writes the audit event and notifies the other processes. Returns the site as it is now. */
async function goneLive(
  stores: SiteStores,
  event: 'site.published' | 'site.rolled_back',
  auditContext: AuditContext,
  { id, live, expiresAt }: Site,
  version: SiteVersion,
): Promise<Site> {
  const after = await mustFind(stores, id);
  const isMoved = after.expiresAt !== expiresAt;
  await stores.audit.append({
    event,
    auditContext,
    target: { kind: 'site', id },
    outcome: 'success',
    details: {
      before: live === null ? null : versionFacts(live),
      after: versionFacts(version),
      ...(isMoved ? { expiresAt: timestampOrNull(after.expiresAt) } : {}),
    },
  });
  await stores.changes.publish({ topic: 'site', subject: id });
  return after;
}

/** Returns the result of `work`; rolls the transaction back when `isUndone`. */
async function undoneWhen<T>(
  isUndone: boolean,
  tx: Tx<SiteStores>,
  work: (stores: SiteStores) => Promise<T>,
): Promise<T> {
  if (!isUndone) return await tx(work);
  let result: { readonly value: T } | undefined;
  class Undo extends Error {}
  try {
    return await tx(async (stores) => {
      result = { value: await work(stores) };
      throw new Undo();
    });
  } catch (error) {
    if (error instanceof Undo && result !== undefined) return result.value;
    throw error;
  }
}

/** Removes surplus versions, but not while their hashed files are still reachable (skew grace). */
export async function dropSurplus(
  stores: SiteStores,
  site: Site,
  { versions: { retain, skewGraceMinutes } }: SitesConfig,
  now: number,
): Promise<void> {
  const before = now - skewGraceMinutes * minute;
  const numbers = await stores.sites.surplusVersions(site.id, { retain, before, now });
  for (const number of numbers) await dropVersion(stores, site, number);
}

/** Removes a version and the content that only it held. The caller has locked the site. */
export async function dropVersion(
  stores: Pick<SiteStores, 'sites' | 'content'>,
  site: Site,
  number: number,
): Promise<void> {
  const numbers = await stores.sites.versionNumbers(site.id);
  const at = numbers.indexOf(number);
  if (at < 0) return;
  const manifestOf = async (one: number | undefined) =>
    one === undefined ? undefined : await stores.sites.manifest(site.id, one);
  const gone = (await manifestOf(number)) ?? new Map();
  const over = overWithout(await manifestOf(numbers[at - 1]), gone, await manifestOf(numbers[at + 1]));
  await stores.content.release(site.owner, over);
  await stores.sites.removeVersion(site.id, number);
}

function digestsOf(files: Manifest): string[] {
  return [...new Set([...files.values()].map(({ digest }) => digest))];
}

export function sizeOf(files: Manifest): number {
  return [...files.values()].reduce((sum, { size }) => sum + size, 0);
}

/** One response names every problem (contract 2, `upload_rejected`). */
export function rejected(problems: readonly UploadProblem[]): AppError {
  const hasKey = problems.some(({ code }) => code === 'credential_in_content');
  return new AppError(hasKey ? 'credential_in_content' : 'upload_rejected', {
    details: { files: problems.map(({ path, code, problem }) => ({ path, code, problem })) },
  });
}

/** @throws AppError upload_rejected when the files are not those that the client announced */
export function requireReceipt({ digest }: Received, announced: string | undefined): void {
  if (announced === undefined || digest === announced) return;
  const problem = `must be exactly the announced files: they have the receipt ${digest}, and ${announced} was announced`;
  throw rejected([{ path: '', code: 'wrong_content', problem }]);
}

/** The limits may have been lowered while the client sent the bytes (UP-04). */
function requireWithin({ upload }: SitesConfig, { files, sizeBytes, archive }: Received): void {
  requireUploadBytes(archive?.bytes ?? 0, upload);
  const problems = limitProblems(
    { files, entries: archive?.entries ?? files.size, bytes: sizeBytes },
    upload,
  );
  if (problems.length > 0) throw rejected(problems);
}

async function mustFind(stores: SiteStores, id: string): Promise<Site> {
  const site = await stores.sites.find(id);
  if (site === undefined) throw new Error('A site vanished inside its own transaction.');
  return site;
}

/**
 * For the audit log. Never the name: the name of a private site is for its owner alone, and a public site may become
 * private. The audit chain can neither change an entry nor leave it out of an export (decision 0038).
 */
export function siteFacts(site: Site) {
  return {
    owner: `${site.owner.kind}:${site.owner.id}`,
    visibility: site.visibility,
    spa: site.spa,
    expiresAt: timestampOrNull(site.expiresAt),
  };
}

function versionFacts({ number, digest, fileCount, sizeBytes }: SiteVersion) {
  return { number, digest, fileCount, sizeBytes };
}
