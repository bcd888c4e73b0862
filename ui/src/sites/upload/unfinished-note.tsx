import { Alert, Button, Text } from '@mantine/core';
import { useState } from 'react';
import { queryClient } from '../../api/queries.ts';
import styles from '../../shell/page.module.css';
import { abandon } from './by-digest.ts';
import { type Unfinished, unfinished } from './unfinished.ts';

/** Names interrupted uploads and how to resume them: the browser forgot the files, the server did not. */
export function UnfinishedNote({ siteId }: { siteId?: string }) {
  const [left, setLeft] = useState(unfinished);
  const here = left.filter((one) => (siteId === undefined ? one.isNew : one.siteId === siteId));
  return here.map((one) => (
    <Note
      key={one.uploadId}
      of={one}
      onForget={() => setLeft((all) => all.filter(({ uploadId }) => uploadId !== one.uploadId))}
    />
  ));
}

function Note({ of: left, onForget }: { of: Unfinished; onForget: () => void }) {
  async function drop(): Promise<void> {
    onForget();
    await abandon(left);
    await queryClient.invalidateQueries({ queryKey: ['sites'] });
  }

  return (
    <Alert color="blue" title="An upload is not finished">
      <Text size="sm" mb="xs">
        Choose{' '}
        {left.name === '' ? (
          'the same files'
        ) : (
          <>
            the folder <bdi>{left.name}</bdi>
          </>
        )}{' '}
        again: only what the server has not received yet is sent.
      </Text>
      <div className={styles['actions']}>
        <Button size="xs" variant="default" onClick={() => void drop()}>
          Discard the upload
        </Button>
      </div>
    </Alert>
  );
}
