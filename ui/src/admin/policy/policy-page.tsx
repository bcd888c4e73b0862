import { getRouteApi } from '@tanstack/react-router';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { policyApi } from './policy-api.tsx';
import { policySections } from './policy-fields.ts';

const route = getRouteApi('/administration/admin/access-controls');

/** What keys there may be and what they may do: the policy, tried out before it is saved. */
export function PolicyPage() {
  const navigate = route.useNavigate();
  const { view = 'settings', page = 1 } = route.useSearch();
  return (
    <>
      <PageHead
        title="Access controls"
        intro="What keys there may be, what they may do and how long. In force everywhere within a second."
      />
      <DocumentView
        api={policyApi}
        sections={policySections}
        view={view}
        page={page}
        onView={(next) => void navigate({ search: next === 'history' ? { view: next } : {} })}
        onPage={(next) => void navigate({ search: { view: 'history', page: next } })}
      />
    </>
  );
}
