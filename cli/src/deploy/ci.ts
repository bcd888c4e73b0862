import { appendFile } from 'node:fs/promises';
import type { Io } from '../core/io.ts';

/** Variables that common CI services set; most of them set CI, too. */
const ofPipelines = ['CI', 'TF_BUILD', 'JENKINS_URL', 'TEAMCITY_VERSION', 'CODEBUILD_BUILD_ID'];

/** Whether this is a pipeline without a terminal: no one answers questions, and the working folder is not kept. */
export function isPipeline({ env, canAsk }: Pick<Io, 'env' | 'canAsk'>): boolean {
  return !canAsk && ofPipelines.some((name) => !['', '0', 'false'].includes(env[name]?.toLowerCase() ?? ''));
}

type Published = { readonly site: string; readonly version: number | null; readonly url: string };

/**
 * In GitHub Actions: the outputs of the step, and a line in the summary of the run. Both are files that the runner names;
 * a value with a line break could add outputs.
 */
export async function reportToActions({ site, version, url }: Published, env: Io['env']): Promise<void> {
  const { GITHUB_ACTIONS: isActions, GITHUB_OUTPUT: outputs, GITHUB_STEP_SUMMARY: summary } = env;
  if (isActions !== 'true' || /[\r\n]/.test(site + url)) return;
  if (outputs) await appendFile(outputs, `url=${url}\nsite=${site}\nversion=${version ?? ''}\n`);
  if (summary) await appendFile(summary, `Published version ${version ?? ''}: <${url}>\n`);
}
