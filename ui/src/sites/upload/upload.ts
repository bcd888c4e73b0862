import { announcementOf, publishByDigest } from './by-digest.ts';
import type { Control, Job, Outcome } from './job.ts';
import { publishWhole } from './whole.ts';

/** What an announcement may have in bytes; the server takes 4 MiB. A folder with more files goes as one archive. */
const maxAnnouncedBytes = 4 * 1024 * 1024 - 4_096;

/** @throws ApiProblem, or an AbortError when it was stopped */
export async function runUpload(job: Job, control: Control): Promise<Outcome> {
  const { picked, files, bytes } = job.checked;
  if (picked.kind !== 'folder' || job.isCheckOnly) return await publishWhole(job, control);
  const announced = await announcementOf(files, bytes, control);
  if (new TextEncoder().encode(JSON.stringify(announced)).length > maxAnnouncedBytes)
    return await publishWhole(job, control);
  return await publishByDigest(job, announced, control);
}
