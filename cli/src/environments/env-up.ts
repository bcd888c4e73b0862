import { openCaller } from '../http/call.ts';
import { wrongUsage } from '../core/failure.ts';
import { branchHere, repositoryHere } from './git-remote.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { type Environment, watchBuild, watchEnvironment, type WatchOptions } from './watch.ts';

type UpOptions = WatchOptions & {
  readonly repository?: string;
  readonly name?: string;
  readonly idempotencyKey?: string;
  readonly dryRun?: boolean;
};

/** Creates the Environment of a branch, or deploys it again; waits, and returns it. @throws Failure */
export async function envUp(given: string | undefined, options: UpOptions, io: Io): Promise<Result> {
  const caller = await openCaller(io, options);
  const { call, chatter } = caller;
  const { name, idempotencyKey } = options;
  const branch = given ?? (await branchHere(io.env));
  const repository = options.repository ?? (await repositoryHere(call));
  const existing = await environmentOf({ repository, branch, name }, caller);
  if (options.dryRun)
    return {
      data: { repository, branch, environment: existing?.uuid ?? null },
      hint: `This is a dry run: it would ${existing === undefined ? 'create an Environment' : `deploy ${existing.uuid} again`}.`,
    };
  if (existing !== undefined) {
    chatter.err(`Deploying ${existing.uuid} again: ${branch} of ${repository}.\n`);
    const { deployId } = await call<{ deployId: string }>('POST', `/environments/${existing.id}/deploy`);
    return await watchBuild(deployId, caller, options);
  }
  const value = {
    repository,
    branch,
    ...(name === undefined ? {} : { name }),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  };
  const created = await call<{ uuid: string }>('POST', '/environments', { kind: 'json', value });
  chatter.err(`Created ${created.uuid}: ${branch} of ${repository}.\n`);
  return await watchEnvironment(created.uuid, caller, options);
}

/** The caller's own. @throws Failure of the code 2 when there are several */
async function environmentOf(
  { repository, branch, name }: { repository: string; branch: string; name: string | undefined },
  { call }: Pick<Awaited<ReturnType<typeof openCaller>>, 'call'>,
): Promise<Environment | undefined> {
  const query = new URLSearchParams({
    repository,
    mine: 'true',
    exclude: 'tearing_down,torn_down',
    limit: '100',
  });
  const own = await call<(Environment & { branch: string })[]>('GET', `/environments?${query.toString()}`);
  const [one, ...others] = own.filter(
    (each) => each.branch === branch && (name === undefined || each.uuid === name),
  );
  if (one !== undefined && others.length > 0)
    throw wrongUsage(
      `You have several Environments of this branch: ${[one, ...others].map(({ uuid }) => uuid).join(', ')}.`,
      'Choose one: --name NAME',
    );
  return one;
}
