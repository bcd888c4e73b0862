import { Button } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { PageHead } from '../../lists/page-head.tsx';
import { IsolationNote } from '../../environments/isolation-note.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { environmentSections } from './environment-fields.ts';
import { environmentPolicyApi } from './environment-policy-api.ts';

const route = getRouteApi('/administration/admin/environments');

/** The Environment policy: the switch for all Environments, and their limits. */
export function EnvironmentsPage() {
  const navigate = route.useNavigate();
  const { view = 'settings', page = 1 } = route.useSearch();
  return (
    <>
      <PageHead
        title="Environment policy"
        intro="Who may open Environments, how long they live, and how much they may use. A change of the policy starts nothing."
      >
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/environments" search={{ whose: 'all' }} {...props} />}
        >
          All Environments
        </Button>
        <Button component={Link} to="/admin/environments/links" variant="default">
          Metadata links
        </Button>
      </PageHead>
      <IsolationNote mb="md" />
      <DocumentView
        api={environmentPolicyApi}
        sections={environmentSections}
        view={view}
        page={page}
        onView={(next) => void navigate({ search: next === 'history' ? { view: next } : {} })}
        onPage={(next) => void navigate({ search: { view: 'history', page: next } })}
      />
    </>
  );
}
