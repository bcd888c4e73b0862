import { minute } from '../../../core/clock.ts';
import type { DeployStep, PlannedDeploy } from '../deploys/deploy.ts';
import type { ObservedProcess } from '../../engine/engine.ts';
import { type Environment, hasProcess } from '../environment/environment.ts';
import type { ReconcilerDeps, StepOutcome } from './deps.ts';
import { rowsOf, waiting } from './fetch-step.ts';
import type { Processes, Running } from './processes.ts';
import { done, type Failure, failed, newStep, recording } from './record.ts';

/** A deploy fails when a process was restarted this often without becoming ready. */
const maxRestarts = 3;
/** A deploy fails when a process is not ready after this time. */
const maxStartMs = 5 * minute;

const nothing: ReadonlyMap<string, string> = new Map();

/** The last steps of a deploy: processes start and become ready, and the gateway serves all services at once. */
export function serveStep(deps: ReconcilerDeps, processes: Processes | null) {
  const record = recording(deps);

  /** Before processes are replaced, the gateway drops their addresses: another Environment may soon use the port. */
  async function begin(deploy: PlannedDeploy): Promise<void> {
    if (deploy.status === 'deploying') return;
    await record(deploy, async (rows, stores) => {
      const { environmentId: id } = deploy;
      const services = (await stores.environments.services([id])).get(id) ?? [];
      const withdrawn = services.map((service) =>
        hasProcess(service) ? { ...service, status: 'starting' as const, address: null } : service,
      );
      await stores.environments.putServices(id, withdrawn);
      return {
        deploy: { ...rows.deploy, status: 'deploying' },
        environment: { ...rows.environment, status: 'deploying' },
      };
    });
  }

  /** The addresses of the processes when all are ready. */
  async function start(
    environment: Environment,
    deploy: PlannedDeploy,
    steps: readonly DeployStep[],
  ): Promise<ReadonlyMap<string, string> | undefined> {
    if (processes === null || !processes.has(deploy.plan)) return nothing;
    await begin(deploy);
    const running = await processes.bring(environment, deploy, steps);
    const { desired, waiting: late, databases } = running;
    const names = [...databases, ...desired.map(({ service }) => service), ...late];
    const now = deps.clock.now();
    const failure = failureIn(names, running, steps, now);
    const isReady = names.every(
      (name) => isReadyIn(running, name) && (running.addresses.has(name) || databases.includes(name)),
    );
    const changed = names.flatMap((name) => changedSteps(name, running, steps, now));
    if (changed.length > 0 || failure !== undefined)
      await record(deploy, async (rows, stores) => {
        for (const step of changed) await stores.deploys.putStep(deploy.id, step);
        return failure === undefined ? rows : await failed(stores, rows, failure, now);
      });
    return isReady && failure === undefined ? running.addresses : undefined;
  }

  return async (
    environment: Environment,
    deploy: PlannedDeploy,
    steps: readonly DeployStep[],
  ): Promise<StepOutcome> => {
    const addresses = await start(environment, deploy, steps);
    if (addresses === undefined) return 'waiting';
    const artifacts = new Map(
      steps.filter(({ step }) => step === 'build').map(({ service, artifactId }) => [service, artifactId]),
    );
    await record(deploy, async (rows, stores, now) => {
      const services = rowsOf(deploy.plan, (name, service) => ({
        ...waiting(name, service),
        status: 'ready',
        artifactId: artifacts.get(name) ?? null,
        address: addresses.get(name) ?? null,
      }));
      await stores.environments.putServices(deploy.environmentId, services);
      await stores.deploys.putStep(deploy.id, done(newStep('', 'route'), now));
      return {
        deploy: { ...rows.deploy, status: 'deployed', message: null, fix: null, endedAt: now },
        environment: {
          ...rows.environment,
          status: 'deployed',
          statusMessage: null,
          liveDeployId: deploy.id,
        },
      };
    });
    return 'again';
  };
}

function failureIn(
  names: readonly string[],
  running: Running,
  steps: readonly DeployStep[],
  now: number,
): Failure | undefined {
  const fix = 'Read its log, and correct the command, the port or the health path in postern.yaml.';
  const ended = [...running.observed.values()].find(
    ({ state, restarts }) => state === 'failed' && restarts >= maxRestarts,
  );
  if (ended !== undefined) {
    const { service, lastLines } = ended;
    return {
      status: 'error',
      message: `${service} ${ended.reason ?? 'did not become ready'}.`,
      ...(lastLines.length === 0 ? {} : { detail: `Its last lines: ${lastLines.join(' · ')}` }),
      fix,
      at: { service, step: 'start' },
    };
  }
  const late = names.find((name) => {
    const step = steps.find((one) => one.service === name && one.step === 'start');
    return !isReadyIn(running, name) && now - (step?.startedAt ?? now) > maxStartMs;
  });
  if (late === undefined) return undefined;
  const reason = running.observed.get(late)?.reason ?? waitsFor;
  return {
    status: 'error',
    message: `${late} was not ready after ${maxStartMs / minute} minutes: ${reason}.`,
    fix,
    at: { service: late, step: 'start' },
  };
}

function isReadyIn({ observed }: Running, name: string): boolean {
  return observed.get(name)?.state === 'ready';
}

/** The steps `start` and `health` of a process that differ from those that are written. */
function changedSteps(
  name: string,
  { observed }: Running,
  steps: readonly DeployStep[],
  now: number,
): DeployStep[] {
  const found = (step: 'start' | 'health') =>
    steps.find((one) => one.service === name && one.step === step) ?? newStep(name, step);
  const [start, health] = [found('start'), found('health')];
  const seen = observed.get(name);
  const wanted = [startOf(start, seen, now), healthOf(health, seen, now)];
  return wanted.filter((step, at) => {
    const before = [start, health][at];
    return before?.status !== step.status || before.message !== step.message;
  });
}

const waitsFor = 'waits for a service that it requires';

function startOf(step: DeployStep, seen: ObservedProcess | undefined, now: number): DeployStep {
  if (seen === undefined)
    return { ...step, status: 'running', startedAt: step.startedAt ?? now, message: waitsFor };
  if (seen.state === 'ready') return step.status === 'done' ? step : done(step, now, { message: null });
  return { ...step, status: 'running', startedAt: step.startedAt ?? now, message: seen.reason };
}

function healthOf(step: DeployStep, seen: ObservedProcess | undefined, now: number): DeployStep {
  return seen?.state === 'ready' && step.status !== 'done' ? done(step, now) : step;
}
