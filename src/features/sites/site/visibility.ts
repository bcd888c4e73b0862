import { type Caller, ownerOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { Visibility } from './site.ts';
import type { SitesConfig } from './sites-config.ts';

export type VisibilityChoice = {
  readonly allowedVisibility: readonly Visibility[];
  /** Why the others are not allowed. */
  readonly visibilityReasons: { readonly [V in Visibility]?: string };
  readonly defaultVisibility: Visibility;
};

/** The visibilities that this caller may choose, and why the others are not allowed. */
export function visibilityFor(
  caller: Caller,
  { visibility }: SitesConfig,
  unavailableReason: string | null,
): VisibilityChoice {
  const isPerson = ownerOf(caller)?.kind === 'user';
  const notPrivate = !isPerson
    ? 'Service keys can own public sites only.'
    : visibility.allowPrivate
      ? unavailableReason
      : 'An administrator does not allow new private sites.';
  const notPublic = visibility.allowPublic ? null : 'An administrator does not allow new public sites.';
  const allowedVisibility: Visibility[] = [
    ...(notPrivate === null ? (['private'] as const) : []),
    ...(notPublic === null ? (['public'] as const) : []),
  ];
  return {
    allowedVisibility,
    visibilityReasons: {
      ...(notPrivate === null ? {} : { private: notPrivate }),
      ...(notPublic === null ? {} : { public: notPublic }),
    },
    // Never silently public: a request from a person without a visibility asks for private, and fails when private is
    // not available.
    defaultVisibility: isPerson ? 'private' : 'public',
  };
}

/** @throws AppError when the caller may not choose it */
export function chooseVisibility(
  caller: Caller,
  settings: SitesConfig,
  unavailableReason: string | null,
  asked: Visibility | undefined,
): Visibility {
  const { allowedVisibility, visibilityReasons, defaultVisibility } = visibilityFor(
    caller,
    settings,
    unavailableReason,
  );
  const wanted = asked ?? defaultVisibility;
  if (allowedVisibility.includes(wanted)) return wanted;
  if (wanted === 'private' && caller.kind === 'service_key') throw new AppError('service_key_public_only');
  const reason = visibilityReasons[wanted];
  const isImpossible = wanted === 'private' && settings.visibility.allowPrivate;
  throw new AppError(isImpossible ? 'private_sites_unavailable' : 'visibility_not_allowed', {
    ...(reason === undefined ? {} : { message: reason, details: { reason } }),
    ...(wanted === 'private' && allowedVisibility.includes('public')
      ? { hint: 'Send visibility "public" if everyone may see it.' }
      : {}),
  });
}
