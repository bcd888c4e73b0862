import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { sitesApi } from './sites-api.tsx';
import { sitesSections } from './sites-fields.ts';

/** The limits of Sites, and the switch for all sites. */
export function SitesConfigPage() {
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
      <DocumentView api={sitesApi} sections={sitesSections} />
    </>
  );
}
