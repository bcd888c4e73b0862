import { ApiProblem } from '../../api/client.ts';
import { announcementOf, publishByDigest, takeBack } from './by-digest.ts';
import type { Control, Job, Outcome } from './job.ts';
import { mayPass } from './send.ts';
import { forget, unfinished } from './unfinished.ts';
import { publishWhole } from './whole.ts';

/** What an announcement may have in bytes; the server takes 4 MiB. A folder with more files goes as one archive. */
const mostAnnouncedBytes = 4 * 1024 * 1024 - 4_096;

/** @throws ApiProblem, or an AbortError when it was stopped */
export async function runUpload(job: Job, control: Control): Promise<Outcome> {
  const { picked, files, bytes } = job.checked;
  if (picked.kind !== 'folder' || job.isCheckOnly) return await publishWhole(job, control);
  const announced = await announcementOf(files, bytes, control);
  if (new TextEncoder().encode(JSON.stringify(announced)).length > mostAnnouncedBytes)
    return await publishWhole(job, control);
  try {
    return await publishByDigest(job, announced, control);
  } catch (error) {
    if (!canGoOn(error)) await abandon();
    throw error;
  }
}

/** Whether the same upload may go on from where it stopped. */
export function canGoOn(error: unknown): boolean {
  return mayPass(error) || (error instanceof ApiProblem && error.status === 401);
}

/** Nothing of it is left: no memory of it, and no empty site that was made for it. */
export async function abandon(): Promise<void> {
  const left = unfinished();
  forget();
  if (left?.isNew === true) await takeBack(left.siteId);
}
