import { ApiProblem } from '../api/client.ts';
import { GlobeIcon } from '../shell/icons.tsx';
import { Empty } from '../lists/empty.tsx';
import { PageHead } from '../lists/page-head.tsx';

/** All of Sites is closed to this person: switched off for everyone, or not for their role. */
export function SitesClosed({ title, why }: { title: string; why: 'off' | 'role' }) {
  return (
    <>
      <PageHead title={title} intro="Static websites at addresses of their own." />
      <Empty
        picture={<GlobeIcon size={28} />}
        title={why === 'off' ? 'Sites are switched off' : 'You may not use Sites'}
      >
        <p className="quiet">
          {why === 'off'
            ? 'An administrator has switched Sites off. No site is served and nothing can be published. Every site is kept as it is, and is back when Sites are switched on again.'
            : 'Your account lacks the role that Sites need. Sites that you have are kept. Ask an administrator for the role.'}
        </p>
      </Empty>
    </>
  );
}

/** Null: the error is of one request, and tells for itself. */
export function closedBy(error: unknown): 'off' | 'role' | null {
  if (!(error instanceof ApiProblem)) return null;
  if (error.code === 'sites_disabled') return 'off';
  return error.code === 'role_required' || error.code === 'forbidden_role' ? 'role' : null;
}
