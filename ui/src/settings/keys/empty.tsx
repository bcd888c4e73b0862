import { Anchor, Button, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { KeyIcon } from '../../app/icons.tsx';
import styles from './empty.module.css';
import type { KeyState } from './key-search.ts';

/** Teaches what a key is for, where there is none. */
export function FirstKey({ onShowAll }: { onShowAll: () => void }) {
  return (
    <section className={styles['card']}>
      <span className={styles['picture']}>
        <KeyIcon size={28} />
      </span>
      <Title order={2} size="h3">
        No active keys
      </Title>
      <ol className={styles['steps']}>
        <li>
          <b>Say what it is for.</b> One key for one script: then it can be taken away from that script alone.
        </li>
        <li>
          <b>Give it little.</b> Only the scopes and repositories the script needs, and an end.
        </li>
        <li>
          <b>Store it at once.</b> Its value is shown a single time; Postern keeps only a digest.
        </li>
      </ol>
      <Button component={Link} to="/settings/keys/new">
        Create a key
      </Button>
      <Anchor component="button" type="button" size="sm" onClick={onShowAll}>
        Show expired and revoked keys
      </Anchor>
    </section>
  );
}

export function NoMatch(shown: { state: KeyState; search: string; onClear: () => void }) {
  const { state, search, onClear } = shown;
  const what = state === 'all' ? 'keys' : `${state} keys`;
  return (
    <section className={styles['card']}>
      <p className={styles['line']}>
        There are no {what}
        {search !== '' && (
          <>
            {' '}
            whose name begins with “<bdi>{search}</bdi>”, or with this id
          </>
        )}
        .
      </p>
      <Button variant="default" size="xs" onClick={onClear}>
        Show active keys
      </Button>
    </section>
  );
}
