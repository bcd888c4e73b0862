import { ApiProblem } from '../api/client.ts';
import { GlobeIcon } from '../shell/icons.tsx';
import { Empty } from '../lists/empty.tsx';
import { PageHead } from '../lists/page-head.tsx';

/** Shown on every page of Sites while it is switched off, or when the person lacks the role for it. */
export function SitesClosed({ title, why }: { title: string; why: 'off' | 'role' }) {
  return (
    <>
      <PageHead title={title} intro="Static websites at their own addresses." />
      <Empty
        picture={<GlobeIcon size={28} />}
        title={why === 'off' ? 'Sites is switched off' : 'You may not use Sites'}
      >
        <p className="quiet">
          {why === 'off'
            ? 'An administrator switched Sites off. Until it is switched on again, no site is served and nothing can be published. Every site and its files are kept.'
            : 'Your account lacks the role that Sites requires. Ask an administrator for it. Sites that you own are kept.'}
        </p>
      </Empty>
    </>
  );
}

/** Why all of Sites is unavailable to the person; null when the error concerns one request only. */
export function closedBy(error: unknown): 'off' | 'role' | null {
  if (!(error instanceof ApiProblem)) return null;
  if (error.code === 'sites_disabled') return 'off';
  return error.code === 'role_required' || error.code === 'forbidden_role' ? 'role' : null;
}
