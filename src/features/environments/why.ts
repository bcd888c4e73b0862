import type { DeployStep, StepName } from './deploys/deploy.ts';
import type { Deploy } from './deploys/deploy.ts';
import type { Environment, EnvironmentService } from './environment.ts';

/** One line of the explanation. `ok` is null while the deploy has not come so far. */
export type Explanation = {
  readonly step: 'configuration' | StepName;
  readonly ok: boolean | null;
  readonly message: string;
  readonly fix?: string;
};

/** Why an Environment is as it is: the newest deploy, step by step, with the words that the reconciler wrote. */
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
  const line = (step: Explanation['step'], said: string): Explanation => {
    if (step === failed) return { step, ok: false, ...problem };
    const own = steps.filter((one) => one.step === step);
    const isDone = step === 'configuration' ? deploy.plan !== null : isStepDone(own, deploy);
    if (isDone) return { step, ok: true, message: said };
    const running = own.filter(({ status }) => status === 'running').map(({ service }) => service);
    const names = running.filter((name) => name !== '').join(', ');
    return { step, ok: null, message: names === '' ? 'Not reached yet.' : `Under way: ${names}.` };
  };
  const built = steps.filter(({ step }) => step === 'build');
  const reused = built.filter((step) => step.reused).length;
  const unready = services.filter(({ status }) => status === 'failed' || status === 'starting');
  return [
    line('configuration', 'postern.yaml has no problems.'),
    line('fetch', `Commit ${deploy.sha?.slice(0, 12) ?? ''} of ${deploy.branch} was read.`),
    line('build', `${built.length} built, ${reused} of them used again.`),
    line('start', 'Every service was started.'),
    unready.length > 0 && deploy.status === 'deployed'
      ? {
          step: 'health',
          ok: false,
          message: unready.map(({ name, reason }) => `${name}: ${reason ?? 'not ready'}`).join(' '),
        }
      : line('health', 'Every service is ready.'),
    line('route', 'The gateway serves it.'),
  ];
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
