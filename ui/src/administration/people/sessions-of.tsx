import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../../api/client.ts';
import { SessionList } from '../../sessions/session-list.tsx';
import common from '../admin.module.css';
import { sessionsOf } from '../queries.ts';

/** The browsers in which this person is signed in. */
export function SessionsOf({ id }: { id: string }) {
  return (
    <section className={common['card']} aria-labelledby="sessions">
      <div className={common['head']}>
        <h2 id="sessions">Sessions</h2>
      </div>
      <SessionList
        found={useQuery(sessionsOf(id))}
        refresh={['admin', 'users']}
        none="This person is not signed in."
        onEnd={({ id: session }) =>
          unwrap(api.DELETE('/users/{id}/sessions/{session}', { params: { path: { id, session } } }))
        }
        onEndAll={() => unwrap(api.DELETE('/users/{id}/sessions', { params: { path: { id } } }))}
        endAll="Sign out everywhere"
        endsCurrent
      />
    </section>
  );
}
