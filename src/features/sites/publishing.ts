import type { Act, Caller } from '../../core/caller.ts';
import { day, hour, minute, timestampOrNull } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Blob } from '../../platform/blobs/blobs.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { Lane } from '../../platform/lane.ts';
import { type Manifest, receiptOf } from './content/manifest.ts';
import { extensionProblem, keyInNameProblems, type UploadProblem } from './content/judge.ts';
import { lookBudget } from './content/key-scan.ts';
import { takeUpload } from './content/upload.ts';
import { begun, overWithout } from './content-runs.ts';
import { mintLabel, mintSiteId } from './labels.ts';
import { visibilityFor } from './reading.ts';
import {
  holdCredential,
  owned,
  requireCurrent,
  requireEnabled,
  requireOwner,
  requireRoom,
  requireVersionMatch,
} from './rights.ts';
import type { Site, SiteOwner, SiteVersion, Visibility } from './site.ts';
import type { UploadRoom } from './upload-room.ts';
import type { Received, Sites, SitesDeps, SiteStores, Upload } from './sites.ts';
import type { SitesConfig } from './sites-config.ts';

/** Content becomes a version, and a version goes live: one short transaction after all bytes are there (contract 6). */
type Publishing = Pick<Sites, 'mayPublish' | 'receive' | 'create' | 'replace' | 'publishVersion' | 'preview'>;

const previewMs = day;
/** Of one site, in any 24 hours. */
const mostPreviewsADay = 100;

export function publishing(deps: SitesDeps, { room, lane }: { room: UploadRoom; lane: Lane }): Publishing {
  const { read, tx, feed, config, blobs, spool, format, clock, random, states } = deps;

  async function spread(site: Site): Promise<Site> {
    feed.announce({ topic: 'site', subject: site.id });
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

  /** By the time it is after whatever had to be waited for. */
  function currentOf(caller: Caller, site: Site | undefined): Site {
    const now = clock.now();
    return requireCurrent(owned(caller, site, now), now);
  }

  async function receiveFrom(
    owner: SiteOwner,
    act: Act,
    upload: Upload,
    { upload: rules, quotas }: SitesConfig,
  ): Promise<Received> {
    // What may be kept, and beside it the archive itself.
    const holding = room.enter(owner, quotas.bytesPerOwner + rules.maxUploadBytes);
    const onKey = (value: string) => deps.exposed(value, act);
    const onBytes = holding.take;
    const since = clock.now();
    const budget = lookBudget(rules.maxExtractedBytes);
    const { left } = upload;
    try {
      const named = keyInNameProblems(upload.fileName, { format, onKey });
      const taken = await takeUpload(upload, rules, { blobs, spool, format, onKey, onBytes, budget, left });
      const { files, entries, problems, sentBytes } = taken;
      // What was refused by its own name alone is on the disk all the same.
      if (problems.length === 0) holding.waits(await notKept(owner, files));
      if (named.length + problems.length > 0) throw rejected([...named, ...problems]);
      const archive = { entries, bytes: sentBytes };
      return { files, sizeBytes: sizeOf(files), digest: receiptOf(files), archive, since };
    } finally {
      holding.leave();
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

    async receive(caller, act, upload) {
      const settings = await requireEnabled(config);
      const owner = requireOwner(caller);
      return await lane(`${owner.kind}:${owner.id}`, () => receiveFrom(owner, act, upload, settings));
    },

    async create(caller, act, request, received, dryRun = false) {
      const owner = requireOwner(caller);
      const settings = await configAtCommit(received);
      const visibility = chooseVisibility(caller, settings, deps.privateObstacle(), request.visibility);
      const now = clock.now();
      const id = mintSiteId(random);
      const site: Site = {
        id,
        name: request.name ?? `site ${id}`,
        owner,
        visibility,
        label: mintLabel(random, visibility),
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
        await requireRoom(stores, owner, settings);
        await stores.sites.insert(site);
        await stores.sites.addLabel({
          label: site.label,
          siteId: id,
          version: null,
          mintedAt: now,
          endsAt: null,
        });
        const version = received && (await addVersion(stores, site, received, act, now, settings));
        await stores.audit.append({
          event: 'site.created',
          act,
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
      if (received !== null) room.publish(owner, digestsOf(received.files));
      return await spread(created);
    },

    async replace(caller, act, id, received, { ifMatch, spa, dryRun = false, alongside, judgedBy }) {
      const settings = judgedBy ?? (await configAtCommit(received));
      const now = clock.now();
      const after = await undoneWhen(dryRun, tx, async (stores) => {
        await holdCredential(stores, caller, clock.now());
        const owner = requireOwner(caller);
        await stores.content.lockForPublish(owner);
        const site = currentOf(caller, await stores.sites.hold(id));
        requireVersionMatch(site, ifMatch);
        if (spa !== undefined && spa !== site.spa)
          await stores.sites.update({ ...site, spa, updatedAt: now });
        await alongside?.(stores);
        const version = await addVersion(stores, site, received, act, now, settings);
        return await goneLive(stores, 'site.published', act, site, version);
      });
      if (dryRun) return after;
      room.publish(requireOwner(caller), digestsOf(received.files));
      return await spread(after);
    },

    async publishVersion(caller, act, id, number, ifMatch) {
      await requireEnabled(config);
      const now = clock.now();
      const after = await tx(async (stores) => {
        await holdCredential(stores, caller, clock.now());
        const site = currentOf(caller, await stores.sites.hold(id));
        requireVersionMatch(site, ifMatch);
        const version = await stores.sites.findVersion(id, number);
        if (version === undefined)
          throw new AppError('not_found', {
            message: `The site has no version ${number}.`,
            hint: 'List its versions; older ones are removed after the configured number.',
          });
        if (site.live?.number === number) return site;
        await stores.sites.setLive(id, number, now);
        const isBack = site.live !== null && number < site.live.number;
        return await goneLive(stores, isBack ? 'site.rolled_back' : 'site.published', act, site, version);
      });
      return await spread(after);
    },

    async preview(caller, act, id, number) {
      await requireEnabled(config);
      const now = clock.now();
      return await tx(async (stores) => {
        await holdCredential(stores, caller, clock.now());
        const site = currentOf(caller, await stores.sites.hold(id));
        if ((await stores.sites.findVersion(id, number)) === undefined)
          throw new AppError('not_found', { message: `The site has no version ${number}.` });
        const nth = await stores.previews.nthNewestAt(id, mostPreviewsADay);
        if (nth !== undefined && nth > now - day) {
          throw new AppError('rate_limited', {
            message: `A site has at most ${mostPreviewsADay} previews a day.`,
            hint: 'Use one that you have: it shows its version for 24 hours. Or wait the seconds in Retry-After.',
            retryAfterSeconds: (nth + day - now) / 1000,
          });
        }
        const label = mintLabel(random, site.visibility);
        const endsAt = now + previewMs;
        await stores.sites.addLabel({ label, siteId: id, version: number, mintedAt: now, endsAt });
        await stores.audit.append({
          event: 'site.previewed',
          act,
          target: { kind: 'site', id },
          outcome: 'success',
          details: { version: number, endsAt: new Date(endsAt).toISOString() },
        });
        return { label, endsAt };
      });
    },
  };

  /** The caller holds lockForPublish(). */
  async function addVersion(
    stores: SiteStores,
    site: Site,
    received: Received,
    act: Act,
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
      createdBy: act.actor.id,
      publishedAt: now,
      replacedAt: null,
    };
    const before = newest && (await stores.sites.manifestOf(site.id, newest));
    const fresh = begun(before, received.files);
    await stores.sites.insertVersion(site.id, version, received.files);
    await stores.content.keep(site.owner, fresh);
    // What the version before holds is needed, so it cannot be going.
    const going = await stores.content.goingAmong(
      fresh.map(({ digest }) => digest),
      received.since,
    );
    if (going.length > 0) {
      throw new AppError('store_unavailable', {
        message: 'Some of these files are being cleaned up at this moment.',
        hint: 'Nothing was changed. Upload again after the seconds in Retry-After.',
      });
    }
    await stores.sites.setLive(site.id, version.number, now);
    await dropSurplus(stores, site, settings, now);
    const bytes = await stores.content.bytesOf(site.owner);
    if (bytes > settings.quotas.bytesPerOwner) {
      throw new AppError('quota_exceeded', {
        message: `Your sites would hold ${bytes} bytes; ${settings.quotas.bytesPerOwner} are allowed.`,
        details: { quota: 'bytesPerOwner', limit: settings.quotas.bytesPerOwner, needed: bytes },
      });
    }
    return version;
  }
}

/** Told to the trail and to the other processes. Answers the site as it is now. */
async function goneLive(
  stores: SiteStores,
  event: 'site.published' | 'site.rolled_back',
  act: Act,
  { id, live }: Site,
  version: SiteVersion,
): Promise<Site> {
  await stores.audit.append({
    event,
    act,
    target: { kind: 'site', id },
    outcome: 'success',
    details: { before: live === null ? null : versionFacts(live), after: versionFacts(version) },
  });
  await stores.changes.publish({ topic: 'site', subject: id });
  return await mustFind(stores, id);
}

/** What `work` comes to, with nothing of it kept when `isUndone`. */
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

/** Versions beyond those to keep go, but not while their hashed files are still within reach (skew grace). */
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

/** A version goes, and with it what only it held. The caller holds the site. */
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

export function digestsOf(files: Manifest): string[] {
  return [...new Set([...files.values()].map(({ digest }) => digest))];
}

export function sizeOf(files: Manifest): number {
  return [...files.values()].reduce((sum, { size }) => sum + size, 0);
}

/** One answer names every problem (contract 2, `upload_rejected`). */
export function rejected(problems: readonly UploadProblem[]): AppError {
  const hasKey = problems.some(({ code }) => code === 'credential_in_content');
  return new AppError(hasKey ? 'credential_in_content' : 'upload_rejected', {
    details: { files: problems.map(({ path, code, problem }) => ({ path, code, problem })) },
  });
}

/** The limits may have been tightened while the bytes came (UP-04). */
function requireWithin({ upload }: SitesConfig, { files, sizeBytes, archive }: Received): void {
  const problems: UploadProblem[] = [];
  if ((archive?.bytes ?? 0) > upload.maxUploadBytes)
    throw new AppError('upload_too_large', { details: { maxUploadBytes: upload.maxUploadBytes } });
  if ((archive?.entries ?? files.size) > upload.maxFiles)
    problems.push({
      path: '',
      code: 'too_many_files',
      problem: `has more than ${upload.maxFiles} files and folders`,
    });
  if (sizeBytes > upload.maxExtractedBytes)
    problems.push({
      path: '',
      code: 'upload_too_large',
      problem: `unpacks to more than ${upload.maxExtractedBytes} bytes`,
    });
  const large = [...files].filter(([, { size }]) => size > upload.maxFileBytes).slice(0, 100);
  for (const [path] of large)
    problems.push({
      path,
      code: 'file_too_large',
      problem: `is larger than ${upload.maxFileBytes} bytes`,
    });
  const refused = [...files.keys()].flatMap((path) => {
    const problem = extensionProblem(path, upload);
    return problem === undefined ? [] : [{ path, code: 'extension_not_allowed', problem } as const];
  });
  problems.push(...refused.slice(0, 100));
  if (problems.length > 0) throw rejected(problems);
}

export function chooseVisibility(
  caller: Caller,
  settings: SitesConfig,
  obstacle: string | null,
  asked: Visibility | undefined,
): Visibility {
  const { allowedVisibility, visibilityReasons, defaultVisibility } = visibilityFor(
    caller,
    settings,
    obstacle,
  );
  const wanted = asked ?? defaultVisibility;
  if (allowedVisibility.includes(wanted)) return wanted;
  if (wanted === 'private' && caller.kind === 'service_key') throw new AppError('service_key_public_only');
  const reason = visibilityReasons[wanted];
  const isImpossible = wanted === 'private' && settings.visibility.allowPrivate;
  throw new AppError(isImpossible ? 'private_sites_unavailable' : 'visibility_not_allowed', {
    ...(reason === undefined ? {} : { message: reason, details: { reason } }),
    ...(wanted === 'private' && allowedVisibility.includes('public')
      ? { hint: 'Send visibility "public" if everybody may see it.' }
      : {}),
  });
}

function firstExpiry({ ttl }: SitesConfig, ttlHours: number | undefined, now: number): number | null {
  if (!ttl.enabled) {
    if (ttlHours !== undefined)
      throw new AppError('expiry_conflict', {
        message: 'Sites do not expire here.',
        hint: 'Leave ttlHours out.',
      });
    return null;
  }
  const most = ttl.maxDays * 24;
  if (ttlHours !== undefined && ttlHours > most) {
    throw new AppError('lifetime_too_long', {
      message: 'The lifetime is longer than sites may have.',
      details: { maxTtlHours: most },
    });
  }
  return now + (ttlHours ?? ttl.defaultDays * 24) * hour;
}

async function mustFind(stores: SiteStores, id: string): Promise<Site> {
  const site = await stores.sites.find(id);
  if (site === undefined) throw new Error('A site vanished inside its own transaction.');
  return site;
}

/** For the audit trail. */
export function siteFacts(site: Site) {
  return {
    name: site.name,
    owner: `${site.owner.kind}:${site.owner.id}`,
    visibility: site.visibility,
    spa: site.spa,
    expiresAt: timestampOrNull(site.expiresAt),
  };
}

function versionFacts({ number, digest, fileCount, sizeBytes }: SiteVersion) {
  return { number, digest, fileCount, sizeBytes };
}
