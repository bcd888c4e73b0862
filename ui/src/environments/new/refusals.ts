import { ApiProblem, sentenceOf } from '../../api/client.ts';
import type { DraftErrors } from './draft.ts';

/** Codes that are about one field. */
const fieldOf: Readonly<Partial<Record<ApiProblem['code'], keyof DraftErrors>>> = {
  invalid_name: 'name',
  name_conflict: 'name',
  invalid_branch: 'branch',
  invalid_repository: 'repository',
  repo_not_onboarded: 'repository',
  lifetime_too_long: 'ttlHours',
  override_not_allowed: 'access',
  auto_track_pinned_source: 'autoTrack',
};

/** The server's error for each field, shown beside that field. */
export function errorsFrom(error: unknown): DraftErrors {
  if (!(error instanceof ApiProblem)) return {};
  const field = fieldOf[error.code];
  if (field !== undefined) return { [field]: `${error.message} ${error.hint}`.trim() };
  const known: readonly string[] = ['repository', 'branch', 'name', 'access', 'ttlHours', 'autoTrack'];
  return Object.fromEntries(
    error.fields.flatMap(({ field: name, problem }) =>
      known.includes(name) ? [[name, sentenceOf(problem)]] : [],
    ),
  );
}
