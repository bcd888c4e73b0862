import { text } from 'node:stream/consumers';
import { AppError } from '../../../core/errors.ts';
import { createFairQueue } from '../../../platform/fair-queue.ts';
import type { Manifest } from '../content/manifest.ts';
import { reportOf, type VersionReport } from '../content/report.ts';
import { pageWarnings, type SiteReport, warningsFor, warningsOf } from '../content/warnings.ts';
import { resolve, type ServedContent } from '../serving/resolve.ts';
import { rulesIn, type VersionRules } from '../content/version-rules.ts';
import type { Site } from '../site/site.ts';
import type { Sites } from '../verbs/site-verbs.ts';
import type { SitesDeps } from '../verbs/sites-deps.ts';

/** Analyses versions on request. A version never changes, so its findings are cached for a while. */
const maxKept = 50;

export function versionReports(
  { read, blobs }: Pick<SitesDeps, 'read' | 'blobs'>,
  { version, get }: Pick<Sites, 'version' | 'get'>,
): Pick<Sites, 'report' | 'warningsOfDryRun'> {
  // Pages are held in memory during the analysis.
  const queue = createFairQueue({ width: 2, perSender: 1, queue: 20 });
  const kept = new Map<string, Promise<SiteReport>>();

  async function make(site: Site, number: number, against: number | undefined): Promise<SiteReport> {
    const files = await read.sites.manifest(site.id, number);
    const earlier = against === undefined ? undefined : await read.sites.manifest(site.id, against);
    if (files === undefined) throw new AppError('not_found', { message: 'There is no such version.' });
    const before =
      earlier === undefined || against === undefined ? null : { number: against, files: earlier };
    const rules = await rulesIn(files, async (digest) => await text(await blobs.read(digest)));
    const report = await analyse(site, files, rules, before);
    const warnings = warningsFor(site, await warningsOf(files, rules));
    const leftOut = await read.sites.leftOut(site.id, number);
    return { ...report, warnings, leftOut };
  }

  async function analyse(
    site: Site,
    files: Manifest,
    rules: VersionRules,
    before: { readonly number: number; readonly files: Manifest } | null,
  ): Promise<VersionReport> {
    const content: ServedContent = {
      spa: site.spa || rules.spa,
      files: new Map([...files].map(([path, blob]) => [path, { ...blob, path, variants: [] }])),
      skew: new Map(),
      redirects: rules.redirects,
      headers: [],
    };
    return await reportOf({
      files,
      before,
      isAnswered(path, isDocument) {
        const found = resolve(content, path, { isDocument, now: 0 });
        return found.kind === 'redirect' || (found.kind === 'file' && found.status === 200);
      },
      read: (digest) => blobs.read(digest),
    });
  }

  return {
    async warningsOfDryRun(site, { files, warnings }) {
      const report = await queue(site.owner.id, async () => {
        const rules = await rulesIn(files, async (digest) => await text(await blobs.read(digest)));
        return await analyse(site, files, rules, null);
      });
      return [...warnings, ...pageWarnings(report)];
    },
    async report(caller, id, number) {
      const found = await version(caller, id, number);
      const site = await get(caller, id);
      const against = (await read.sites.versionNumbers(id)).findLast((one) => one < number);
      const name = [id, number, against, site.spa, site.visibility].join(' ');
      let report = kept.get(name);
      if (report === undefined) {
        report = queue(site.owner.id, () => make(site, number, against));
        kept.set(name, report);
        report.catch(() => kept.delete(name));
        const [oldest] = kept.keys();
        if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
      }
      return { ...found, report: await report };
    },
  };
}
