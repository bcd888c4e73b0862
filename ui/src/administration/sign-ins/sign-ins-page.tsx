import { Button } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { signInsApi } from './sign-ins-api.tsx';
import { signInSections } from './sign-in-fields.ts';

const route = getRouteApi('/administration/admin/access-controls/sign-ins');

/** How many sign-ins one address may start. */
export function SignInsPage() {
  const navigate = route.useNavigate();
  const { view = 'settings', page = 1 } = route.useSearch();
  return (
    <>
      <PageHead
        title="Sign-in limits"
        intro="How many sign-ins one address may start. Changes take effect everywhere within a second."
      >
        <Button component={Link} to="/admin/access-controls" variant="default">
          Access controls
        </Button>
      </PageHead>
      <DocumentView
        api={signInsApi}
        sections={signInSections}
        view={view}
        page={page}
        onView={(next) => void navigate({ search: next === 'history' ? { view: next } : {} })}
        onPage={(next) => void navigate({ search: { view: 'history', page: next } })}
      />
    </>
  );
}
