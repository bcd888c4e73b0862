import { ApiProblem } from '../../api/client.ts';
import type { Finding } from './precheck.ts';

/** Reasons for a refused upload: one entry for each file, with the server's message. */
export type Refused = Finding & { readonly code: string };

export function refusedIn(error: unknown): Refused[] {
  if (!(error instanceof ApiProblem)) return [];
  const { details } = error;
  if (typeof details !== 'object' || details === null || !('files' in details)) return [];
  return Array.isArray(details.files) ? details.files.filter(isRefused) : [];
}

function isRefused(value: unknown): value is Refused {
  return (
    typeof value === 'object' &&
    value !== null &&
    'path' in value &&
    'problem' in value &&
    'code' in value &&
    typeof value.path === 'string' &&
    typeof value.problem === 'string' &&
    typeof value.code === 'string'
  );
}

/** The refusals of several batches as one. */
export function together(last: ApiProblem, files: readonly Refused[]): ApiProblem {
  const hasKey = files.some(({ code }) => code === 'credential_in_content');
  const { status, message, hint, requestId } = last;
  return new ApiProblem({
    status,
    code: hasKey ? 'credential_in_content' : last.code,
    message,
    hint,
    requestId,
    details: { files },
  });
}
