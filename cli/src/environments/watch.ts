import type { Call, OpenCaller } from '../http/call.ts';
import { type CallerOptions, openCaller } from '../http/call.ts';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import type { Problem } from '../core/problem.ts';
import { waitAfterLoss } from '../http/send.ts';

export type WatchOptions = CallerOptions & {
  /** Seconds. */
  readonly timeout?: number;
};

export type Environment = {
  readonly id: string;
  readonly uuid: string;
  readonly status: string;
  readonly link: string;
  readonly services: readonly {
    readonly name: string;
    readonly url: string | null;
    readonly active: boolean;
  }[];
};

type Build = {
  readonly id: string;
  readonly status: string;
  readonly message: string | null;
  readonly fix: string | null;
  readonly problems: readonly unknown[];
  readonly environment: { readonly id: string; readonly uuid: string };
};

export type Explanation = {
  readonly step: string;
  readonly ok: boolean | null;
  readonly message: string;
  readonly fix?: string;
  readonly problems?: readonly Problem[];
};

const everyMs = 1_000;
/** Longer than a build and a start may take by default. */
const usualTimeoutSeconds = 1_800;

/** Follows a build or an Environment until it is ready, and returns the Environment. @throws Failure */
export async function watch(target: string, options: WatchOptions, io: Io): Promise<Result> {
  const caller = await openCaller(io, options);
  if (target.startsWith('bld_')) return await watchBuild(target, caller, options);
  return await watchEnvironment(target, caller, options);
}

/** @throws Failure of the code 8 when it takes too long */
export async function watchEnvironment(
  name: string,
  { call, chatter }: Pick<OpenCaller, 'call' | 'chatter'>,
  options: WatchOptions,
): Promise<Result> {
  const path = `/environments/${encodeURIComponent(name)}`;
  const environment = await until(
    () => call<Environment>('GET', path),
    ({ status }) => hasEnded(status) || status === 'paused' || status === 'tearing_down',
    name,
    { chatter, options },
  );
  const { status, uuid } = environment;
  if (status === 'deployed' || status === 'asleep') return readyResult(environment);
  if (status === 'paused')
    throw new Failure('deploy_disabled', 6, `Deploys of ${uuid} are paused.`, {
      hint: `Switch them on: postern env change ${uuid} --deploy-enabled`,
    });
  if (status !== 'error' && status !== 'config_error')
    throw new Failure('env_tearing_down', 1, `${uuid} is torn down.`);
  const steps = await call<Explanation[]>('GET', `${path}/why`);
  const failed = steps.find(({ ok }) => ok === false);
  const { message = 'It failed.', fix = null, problems } = failed ?? {};
  // Each problem has its own fix.
  throw new Failure(status, 1, message, problems === undefined ? { hint: fix } : { details: { problems } });
}

/** @throws Failure of the code 8 when it takes too long */
export async function watchBuild(
  id: string,
  { call, chatter }: Pick<OpenCaller, 'call' | 'chatter'>,
  options: WatchOptions,
): Promise<Result> {
  const build = await until(
    () => call<Build>('GET', `/builds/${encodeURIComponent(id)}`),
    ({ status }) => hasEnded(status),
    id,
    { chatter, options },
  );
  const { status, environment, message, fix, problems } = build;
  if (status === 'deployed')
    return readyResult(await call<Environment>('GET', `/environments/${environment.id}`));
  if (status === 'superseded')
    throw new Failure('build_superseded', 1, 'A newer build replaced this one.', {
      hint: `Watch the Environment: postern watch ${environment.uuid}`,
    });
  if (status === 'cancelled') throw new Failure('build_cancelled', 1, message ?? 'The build was cancelled.');
  throw new Failure(status, 1, message ?? 'The build failed.', {
    hint: problems.length === 0 ? fix : null,
    details: problems.length === 0 ? null : { problems },
  });
}

function hasEnded(status: string): boolean {
  return ['deployed', 'asleep', 'error', 'config_error', 'cancelled', 'superseded', 'torn_down'].includes(
    status,
  );
}

/** Asks once a second; says each status once, or on a terminal in one line that it replaces. */
async function until<T extends { readonly status: string }>(
  look: () => Promise<T>,
  isDone: (seen: T) => boolean,
  name: string,
  { chatter, options }: { readonly chatter: Io; readonly options: WatchOptions },
): Promise<T> {
  const { timeout = usualTimeoutSeconds } = options;
  const startedAt = chatter.now();
  let shown = '';
  let losses = 0;
  try {
    for (;;) {
      try {
        const seen = await look();
        losses = 0;
        if (isDone(seen)) return seen;
        const seconds = Math.round((chatter.now() - startedAt) / 1000);
        if (chatter.errIsTerminal) chatter.err(`\r\u001b[K${name}: ${seen.status}, ${seconds} s`);
        else if (seen.status !== shown) chatter.err(`${name}: ${seen.status}\n`);
        shown = seen.status;
      } catch (error) {
        await waitAfterLoss(error, losses, chatter);
        losses += 1;
      }
      if (chatter.now() - startedAt >= timeout * 1000)
        throw new Failure('watched_too_long', 8, `${name} has not ended after ${timeout} s.`, {
          hint: `Continue: postern watch ${name}`,
        });
      await chatter.wait(everyMs);
    }
  } finally {
    if (chatter.errIsTerminal && shown !== '') chatter.err('\r\u001b[K');
  }
}

/** Piped, only the addresses are printed: those of its services, or the link where none has one. */
function readyResult(environment: Environment): Result {
  const urls = environment.services.flatMap(({ url, active }) => (active && url !== null ? [url] : []));
  return {
    data: environment,
    text: (urls.length === 0 ? [environment.link] : urls).map((url) => `${url}\n`).join(''),
  };
}

/** The Environment of a name, an id, a link or the address of a service. @throws Failure of the code 3 */
export async function environmentAt(given: string, origin: string, call: Call): Promise<string> {
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol)) return given;
  const [, id] = /^\/(?:e|environments)\/([\w-]+)\/?$/.exec(url.pathname) ?? [];
  if (url.origin === origin && id !== undefined) return id;
  for (let page = 1; ; page += 1) {
    const found = await call<Environment[]>('GET', `/environments?limit=100&page=${page}`);
    const one = found.find(({ services }) =>
      services.some((service) => service.url !== null && URL.parse(service.url)?.origin === url.origin),
    );
    if (one !== undefined) return one.id;
    if (found.length < 100)
      throw new Failure('env_not_found', 3, 'No Environment that you can see has this address.', {
        hint: 'Names: postern env list',
      });
  }
}
