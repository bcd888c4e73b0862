import { Button } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { sitesApi } from './sites-api.tsx';
import { sitesSections } from './sites-fields.ts';

const route = getRouteApi('/administration/admin/sites');

/** The limits of Sites, and the switch for all sites. */
export function SitesConfigPage() {
  const navigate = route.useNavigate();
  const { view = 'settings', page = 1 } = route.useSearch();
  return (
    <>
      <PageHead
        title="Sites limits"
        intro="What people may publish, how long it stays, and whether Sites is on at all."
      >
        <Button component={Link} to="/admin/sites/all" variant="default">
          All sites and storage
        </Button>
      </PageHead>
      <DocumentView
        api={sitesApi}
        sections={sitesSections}
        view={view}
        page={page}
        onView={(next) => void navigate({ search: next === 'history' ? { view: next } : {} })}
        onPage={(next) => void navigate({ search: { view: 'history', page: next } })}
      />
    </>
  );
}
