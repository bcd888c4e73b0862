import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { PageHead } from '../../lists/page-head.tsx';
import { IsolationNote } from '../../environments/isolation-note.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { environmentSections } from './environment-fields.ts';
import { environmentPolicyApi } from './environment-policy-api.ts';

/** The Environment policy: the switch for all Environments, and their limits. */
export function EnvironmentsPage() {
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
      <DocumentView api={environmentPolicyApi} sections={environmentSections} />
    </>
  );
}
