import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { FreshSignInNote } from '../../shell/fresh-sign-in.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { policyApi } from './policy-api.tsx';
import { policySections } from './policy-fields.ts';

/** The key policy: which keys may exist and what they may do. A dry run precedes every save. */
export function PolicyPage() {
  return (
    <>
      <PageHead
        title="Access controls"
        intro="What keys may exist, what they may do, and for how long. Changes take effect everywhere within a second."
      >
        <Button component={Link} to="/admin/access-controls/sign-ins" variant="default">
          Sign-ins
        </Button>
      </PageHead>
      <FreshSignInNote />
      <DocumentView api={policyApi} sections={policySections} />
    </>
  );
}
