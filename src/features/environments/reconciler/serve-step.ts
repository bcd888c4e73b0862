import type { DesiredEnvironment } from '../configuration-file/plan.ts';
import type { Deploy, DeployStep } from '../deploys/deploy.ts';
import type { ObservedProcess } from '../engine/engine.ts';
import type { Environment, EnvironmentService } from '../environment.ts';
import type { ReconcilerDeps, StepOutcome } from './deps.ts';
import { waiting } from './fetch-step.ts';
import type { Processes, Running } from './processes.ts';
import { done, failed, newStep, recording } from './record.ts';

type Planned = Deploy & { readonly plan: DesiredEnvironment };

/** A process that was started this often and did not become ready fails its deploy. */
const maxRestarts = 3;

/** The last steps of a deploy: processes start and become ready, and the gateway serves all services at once. */
export function serveStep(deps: ReconcilerDeps, processes: Processes | null) {
  const record = recording(deps);

  async function start(
    environment: Environment,
    deploy: Planned,
    steps: readonly DeployStep[],
  ): Promise<'ready' | 'waiting'> {
    if (processes === null || !processes.has(deploy.plan)) return 'ready';
    if (deploy.status !== 'deploying')
      await record(deploy, (rows) => ({
        deploy: { ...rows.deploy, status: 'deploying' },
        environment: { ...rows.environment, status: 'deploying' },
      }));
    const running = await processes.bring(environment, deploy, steps);
    const names = [...running.desired.map(({ service }) => service), ...running.waiting];
    const ended = [...running.observed.values()].find(
      ({ state, restarts }) => state === 'failed' && restarts >= maxRestarts,
    );
    const isReady = names.every((name) => running.addresses.has(name) && isReadyIn(running, name));
    const changed = names.flatMap((name) => changedSteps(name, running, steps, deps.clock.now()));
    if (changed.length === 0 && ended === undefined && isReady) return 'ready';
    if (changed.length === 0 && ended === undefined) return 'waiting';
    await record(deploy, async (rows, stores, now) => {
      for (const step of changed) await stores.deploys.putStep(deploy.id, step);
      if (ended === undefined) return rows;
      const last = ended.lastLines.length === 0 ? '' : ` Its last lines: ${ended.lastLines.join(' · ')}`;
      const message = `${ended.service} ${ended.reason ?? 'did not become ready'}.${last}`;
      const fix = 'Read its log, and correct the command, the port or the health path in postern.yaml.';
      return failed(rows, { status: 'error', message, fix }, now);
    });
    return isReady && ended === undefined ? 'ready' : 'waiting';
  }

  return async (
    environment: Environment,
    deploy: Planned,
    steps: readonly DeployStep[],
  ): Promise<StepOutcome> => {
    if ((await start(environment, deploy, steps)) === 'waiting') return 'waiting';
    const artifacts = new Map(
      steps.filter(({ step }) => step === 'build').map(({ service, artifactId }) => [service, artifactId]),
    );
    const addresses =
      processes === null || !processes.has(deploy.plan)
        ? new Map<string, string>()
        : (await processes.bring(environment, deploy, steps)).addresses;
    await record(deploy, async (rows, stores, now) => {
      const services = Object.entries(deploy.plan.services).map(
        ([name, service]): EnvironmentService => ({
          ...waiting(name, service),
          status: 'ready',
          artifactId: artifacts.get(name) ?? null,
          address: addresses.get(name) ?? null,
        }),
      );
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

function startOf(step: DeployStep, seen: ObservedProcess | undefined, now: number): DeployStep {
  if (seen === undefined) return step;
  if (seen.state === 'ready') return step.status === 'done' ? step : done(step, now, { message: null });
  return { ...step, status: 'running', startedAt: step.startedAt ?? now, message: seen.reason };
}

function healthOf(step: DeployStep, seen: ObservedProcess | undefined, now: number): DeployStep {
  return seen?.state === 'ready' && step.status !== 'done' ? done(step, now) : step;
}
