import { Badge, Button, Modal, Text } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { Schemas } from '../api/contract.ts';
import { List } from '../lists/list.tsx';
import styles from '../lists/item-list.module.css';
import { browserWords } from '../shell/browser-words.ts';
import { focusIfLost } from '../shell/focus.ts';
import { Confirm } from '../shell/confirm.tsx';
import { Moment } from '../shell/moment.tsx';
import { useNow } from '../shell/now.ts';
import type { Change } from '../shell/use-change.ts';

type Session = Schemas['BrowserSession'];

type SessionListProps = {
  readonly found: UseQueryResult<Session[]>;
  readonly refresh: Change['refresh'];
  /** The sentence for a person without a session. */
  readonly none: string;
  readonly onEnd: (session: Session) => Promise<unknown>;
  /** Ends all but the current one, unless `endsCurrent`. */
  readonly onEndAll: () => Promise<unknown>;
  readonly endAll: string;
  /** True: also the current one. */
  readonly endsCurrent?: boolean;
};

/** The browsers in which a person is signed in, each with a button to sign out there. */
export function SessionList({ found, refresh, none, onEnd, onEndAll, endAll, ...props }: SessionListProps) {
  const [leaving, setLeaving] = useState<Session | 'all'>();
  const list = useRef<HTMLDivElement>(null);
  const now = useNow();
  const ending = found.data?.filter(({ isCurrent }) => props.endsCurrent === true || !isCurrent) ?? [];
  return (
    <div ref={list} tabIndex={-1}>
      <List what="sessions" found={found} empty={<Text size="sm">{none}</Text>}>
        {(sessions) => (
          <ul className={styles['list']}>
            {sessions.map((session) => (
              <li key={session.id}>
                <div>
                  <span className={styles['name']} title={session.agent ?? ''}>
                    <bdi>{nameOf(session)}</bdi>{' '}
                    {session.isCurrent && <Badge variant="light">This browser</Badge>}
                  </span>
                  <span className="quiet">
                    Signed in <Moment at={session.createdAt} now={now} /> · used{' '}
                    <Moment at={session.lastSeenAt} now={now} />
                    {session.address !== null && (
                      <>
                        {' '}
                        · from <code>{session.address}</code>
                      </>
                    )}
                  </span>
                </div>
                {!session.isCurrent && (
                  <Button
                    variant="default"
                    size="xs"
                    aria-label={`Sign out ${nameOf(session)}`}
                    onClick={() => setLeaving(session)}
                  >
                    Sign out
                  </Button>
                )}
              </li>
            ))}
          </ul>
        )}
      </List>
      {ending.length > 1 && (
        <Button variant="default" mt="md" onClick={() => setLeaving('all')}>
          {endAll}
        </Button>
      )}
      <Modal
        opened={leaving !== undefined}
        onClose={() => setLeaving(undefined)}
        title={leaving === 'all' ? `${endAll}?` : 'Sign out this browser?'}
      >
        {leaving !== undefined && (
          <Confirm
            act={() => (leaving === 'all' ? onEndAll() : onEnd(leaving))}
            said={leaving === 'all' ? 'The browsers are signed out.' : 'The browser is signed out.'}
            refresh={refresh}
            confirm="Sign out"
            keep="Keep signed in"
            onClose={() => setLeaving(undefined)}
            onDone={() => focusIfLost(list.current)}
          >
            <Text size="sm">
              {leaving === 'all' ? `${ending.length} browsers lose` : <b>{nameOf(leaving)}</b>}
              {leaving === 'all' ? '' : ' loses'} access immediately. API keys, connected clients and links to
              private sites that are open there stay.
            </Text>
          </Confirm>
        )}
      </Modal>
    </div>
  );
}

function nameOf({ agent }: Session): string {
  return agent === null ? 'Unknown browser' : browserWords(agent);
}
