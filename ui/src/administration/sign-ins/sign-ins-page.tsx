import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { FreshSignInNote } from '../../shell/fresh-sign-in.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { DocumentView } from '../documents/document-view.tsx';
import { signInsApi } from './sign-ins-api.tsx';
import { signInSections } from './sign-in-fields.ts';

/** Limits and requirements of sign-ins. */
export function SignInsPage() {
  return (
    <>
      <PageHead
        title="Sign-ins"
        intro="How many sign-ins one address may start, how fresh a sign-in must be, and who needs a second factor. Changes take effect everywhere within a second."
      >
        <Button component={Link} to="/admin/access-controls" variant="default">
          Access controls
        </Button>
      </PageHead>
      <FreshSignInNote />
      <DocumentView api={signInsApi} sections={signInSections} />
    </>
  );
}
