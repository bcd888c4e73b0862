import { useEffect, useRef, useState } from 'react';
import { queryClient } from '../../api/queries.ts';
import { announce } from '../../shell/announce.tsx';
import type { Control, Job, Outcome, Stage } from './job.ts';
import { announcementOf, publishByDigest } from './by-digest.ts';
import { publishWhole } from './whole.ts';

export type UploadState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running'; readonly stage: Stage; readonly job: Job }
  | { readonly kind: 'failed'; readonly error: unknown; readonly job: Job }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'checked'; readonly warnings: Outcome['warnings'] }
  | { readonly kind: 'done'; readonly outcome: Outcome };

/** Runs one upload at a time and reports its progress. It stops when the user leaves the page. */
export function useUpload() {
  const [state, setState] = useState<UploadState>({ kind: 'idle' });
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);

  async function run(job: Job): Promise<void> {
    const control = new AbortController();
    running.current = control;
    const tell = (stage: Stage) => setState({ kind: 'running', stage, job });
    tell({ kind: 'reading', done: 0, total: job.checked.bytes });
    try {
      const outcome = await runUpload(job, { signal: control.signal, tell });
      announce(job.isCheckOnly ? checkedWords(outcome) : `${outcome.site.name} is published.`);
      setState(job.isCheckOnly ? { kind: 'checked', warnings: outcome.warnings } : { kind: 'done', outcome });
    } catch (error) {
      if (control.signal.aborted) announce('The upload is stopped.');
      setState(control.signal.aborted ? { kind: 'stopped' } : { kind: 'failed', error, job });
    }
    await queryClient.invalidateQueries({ queryKey: ['sites'] });
  }

  return {
    state,
    start: (job: Job) => void run(job),
    stop: () => running.current?.abort(),
    reset: () => setState({ kind: 'idle' }),
  };
}

function checkedWords({ warnings }: Outcome): string {
  return warnings.length === 0 ? 'The check found nothing wrong.' : 'The check has a warning.';
}

/** What an announcement may have in bytes; the server takes 4 MiB. A folder with more files goes as one archive. */
const maxAnnouncedBytes = 4 * 1024 * 1024 - 4_096;

/** @throws ApiProblem, or an AbortError when it was stopped */
async function runUpload(job: Job, control: Control): Promise<Outcome> {
  const { picked, files, bytes } = job.checked;
  if (picked.kind !== 'folder' || job.isCheckOnly) return await publishWhole(job, control);
  const announced = await announcementOf(files, bytes, control);
  if (new TextEncoder().encode(JSON.stringify(announced)).length > maxAnnouncedBytes)
    return await publishWhole(job, control);
  return await publishByDigest(job, announced, control);
}
