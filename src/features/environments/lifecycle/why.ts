import type { Problem } from '../../configuration-file/configuration-file.ts';
import type { Deploy, DeployStep, StepName } from '../deploys/deploy.ts';
import { type Environment, type EnvironmentService, isEnding } from '../environment/environment.ts';

/** One line of the explanation. `ok` is null until the deploy reaches this step. */
export type Explanation = {
  readonly step: 'configuration' | StepName;
  readonly ok: boolean | null;
  readonly message: string;
  readonly fix?: string;
  /** Problems of postern.yaml that ended the deploy. */
  readonly problems?: readonly Problem[];
};

/** Explains the state of an Environment: the newest deploy, step by step, with the reconciler's messages. */
export function explain(
  environment: Environment,
  deploy: Deploy | undefined,
  steps: readonly DeployStep[],
  services: readonly EnvironmentService[],
): readonly Explanation[] {
  if (deploy === undefined)
    return [
      {
        step: 'configuration',
        ok: null,
        message: 'Nothing was deployed yet.',
        ...(environment.deployEnabled ? {} : { fix: 'Set deployEnabled to true, and deploy.' }),
      },
    ];
  const { message, fix } = deploy;
  const failed = failedStep(deploy, steps);
  const problem = { message: message ?? 'It failed.', ...(fix === null ? {} : { fix }) };
  const isRead = steps.some(({ step, status }) => step === 'fetch' && status === 'done');
  const line = (step: Explanation['step'], said: string): Explanation => {
    if (step === failed)
      return {
        step,
        ok: false,
        ...problem,
        ...(deploy.problems.length === 0 ? {} : { problems: deploy.problems }),
      };
    const own = steps.filter((one) => one.step === step);
    // A teardown forgets the plan, but not that the file was read.
    const isDone = step === 'configuration' ? deploy.plan !== null || isRead : isStepDone(own, deploy);
    if (isDone) return { step, ok: true, message: said };
    const running = own.filter(({ status }) => status === 'running').map(runningWords);
    return { step, ok: null, message: running.length === 0 ? 'Not reached yet.' : running.join(' ') };
  };
  const built = steps.filter(({ step }) => step === 'build');
  const reused = built.filter((step) => step.reused).length;
  const lines = [
    line('configuration', 'postern.yaml has no problems.'),
    line('fetch', `Commit ${deploy.sha?.slice(0, 12) ?? ''} of ${deploy.branch} was read.`),
    line('build', `${built.length - reused} built, ${reused} cached.`),
    line('start', 'Every service was started.'),
    healthNow(environment, deploy, services) ?? line('health', 'Every service is ready.'),
    isEnding(environment) ? endOf(environment) : line('route', 'The gateway serves it.'),
  ];
  if (failed !== undefined || deploy.status === 'deployed') return lines;
  const current = lines.findIndex(({ step, ok }) => step !== 'configuration' && ok === null);
  return lines.map((one, at) => (at === current ? atCurrent(one, environment, deploy) : one));
}

function runningWords({ service, message }: DeployStep): string {
  const of = [service, message?.replace(/\.$/, '')].filter((part) => part).join(': ');
  return of === '' ? 'Under way.' : `Under way: ${of}.`;
}

/** The current step of a deploy, or the step at which it was cancelled. The Environment names an unavailable service, such as git. */
function atCurrent(one: Explanation, { statusMessage }: Environment, deploy: Deploy): Explanation {
  if (deploy.endedAt !== null) return { ...one, ok: false, message: deploy.message ?? 'It was cancelled.' };
  return statusMessage === null ? one : { ...one, message: `${one.message} ${statusMessage}` };
}

/** What happened to the services after the deploy. Undefined: nothing. */
function healthNow(
  environment: Environment,
  deploy: Deploy,
  services: readonly EnvironmentService[],
): Explanation | undefined {
  const step = 'health';
  if (isEnding(environment)) return { step, ok: false, message: 'Its services were ended.' };
  if (environment.status === 'asleep')
    return { step, ok: true, message: `It is asleep. ${environment.statusMessage ?? ''}`.trim() };
  const unready = services.filter(({ status }) => status === 'failed' || status === 'starting');
  if (unready.length === 0 || deploy.status !== 'deployed') return undefined;
  const message = unready.map(({ name, reason }) => `${name}: ${reason ?? 'not ready'}`).join(' ');
  return { step, ok: false, message };
}

function endOf({ status, statusMessage }: Environment): Explanation {
  const message =
    status === 'torn_down'
      ? 'It was torn down. Nothing of it is served.'
      : `It is being torn down. Nothing of it is served. ${statusMessage ?? ''}`.trim();
  return { step: 'route', ok: false, message };
}

function failedStep(deploy: Deploy, steps: readonly DeployStep[]): Explanation['step'] | undefined {
  if (deploy.status === 'config_error') return 'configuration';
  const failed = steps.find(({ status }) => status === 'failed')?.step;
  return failed ?? (deploy.status === 'error' ? 'fetch' : undefined);
}

function isStepDone(own: readonly DeployStep[], deploy: Deploy): boolean {
  if (deploy.status === 'deployed') return true;
  return own.length > 0 && own.every(({ status }) => status === 'done');
}
