import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../../api/client.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { SessionList } from '../../sessions/session-list.tsx';
import { mySessions } from '../queries.ts';

/** The browsers in which the user is signed in. */
export function SessionsPage() {
  return (
    <>
      <PageHead
        title="Sessions"
        intro="Browsers in which you are signed in. Sign out the ones that you do not know or no longer use."
      />
      <SessionList
        found={useQuery(mySessions)}
        refresh={['sessions']}
        none="You are not signed in anywhere."
        onEnd={({ id }) => unwrap(api.DELETE('/me/sessions/{id}', { params: { path: { id } } }))}
        onEndAll={() => unwrap(api.DELETE('/me/sessions'))}
        endAll="Sign out everywhere else"
      />
    </>
  );
}
