import type { Caller } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import { actionsFor } from '../site/actions.ts';
import { changesBetween } from '../content/file-changes.ts';
import { requireEnabled, requireOwner, seen, owned } from './rights.ts';
import type { Sites } from './site-verbs.ts';
import type { SitesDeps } from './sites-deps.ts';
import { visibilityFor } from '../site/visibility.ts';

type Reading = Pick<
  Sites,
  'capabilities' | 'list' | 'get' | 'versions' | 'version' | 'files' | 'openFile' | 'actions' | 'changes'
>;

export function reading(deps: SitesDeps): Reading {
  const { read, config, blobs, clock, privateUnavailableReason } = deps;

  async function find(caller: Caller, id: string) {
    await requireEnabled(config);
    return seen(caller, await read.sites.find(id), clock.now());
  }

  /** Only the owner reads versions and their content; everyone else sees the site as it is served. */
  async function findOwn(caller: Caller, id: string) {
    await requireEnabled(config);
    return owned(caller, await read.sites.find(id), clock.now());
  }

  async function version(caller: Caller, id: string, number: number) {
    const site = await findOwn(caller, id);
    const found = await read.sites.findVersion(id, number);
    if (found === undefined)
      throw new AppError('not_found', { message: `The site has no version ${number}.` });
    return { ...found, isLive: site.live?.number === number };
  }

  async function files(caller: Caller, id: string, number: number | undefined) {
    const site = number === undefined ? await find(caller, id) : await findOwn(caller, id);
    const wanted = number === undefined ? site.live : await read.sites.findVersion(id, number);
    const manifest = wanted && (await read.sites.manifest(id, wanted.number));
    if (!wanted || !manifest) throw new AppError('not_found', { message: 'There is no such version.' });
    return { version: wanted, files: manifest };
  }

  return {
    async capabilities(caller) {
      const { value } = await config.inForce();
      const owner = requireOwner(caller);
      return {
        config: value,
        ...visibilityFor(caller, value, privateUnavailableReason()),
        sitesUsed: await read.sites.countOf(owner),
        bytesUsed: await read.content.bytesOf(owner),
      };
    },
    async list(caller, filter, page, limit) {
      await requireEnabled(config);
      return await read.sites.list({ ...filter, viewer: requireOwner(caller) }, clock.now(), page, limit);
    },
    get: find,
    async versions(caller, id, page, limit) {
      await findOwn(caller, id);
      return await read.sites.versions(id, page, limit);
    },
    version,
    files,
    async actions(caller, id) {
      const { value: settings } = await config.inForce();
      const site = await find(caller, id);
      return actionsFor({
        caller,
        site,
        settings,
        privateUnavailableReason: privateUnavailableReason(),
        now: clock.now(),
      });
    },
    async changes(caller, id, number, against) {
      const { live } = await findOwn(caller, id);
      const { files: after } = await files(caller, id, number);
      const base = against ?? live?.number;
      if (base === undefined) return { against: null, files: changesBetween(new Map(), after) };
      return { against: base, files: changesBetween((await files(caller, id, base)).files, after) };
    },
    async openFile(caller, id, number, path) {
      const file = (await files(caller, id, number)).files.get(path);
      if (file === undefined) throw new AppError('not_found', { message: 'The version has no such file.' });
      return { size: file.size, stream: await blobs.read(file.digest) };
    },
  };
}
