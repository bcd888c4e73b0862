import { Alert, Button, Text } from '@mantine/core';
import { useState } from 'react';
import { queryClient } from '../../api/queries.ts';
import styles from '../sites.module.css';
import { unfinished } from './unfinished.ts';
import { abandon } from './upload.ts';

/** Says that an upload was broken off, and how it goes on: the browser forgot the files, the server did not. */
export function UnfinishedNote({ siteId }: { siteId?: string }) {
  const [left, setLeft] = useState(unfinished);
  if (left === null || (siteId === undefined ? !left.isNew : left.siteId !== siteId)) return null;

  async function drop(): Promise<void> {
    setLeft(null);
    await abandon();
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
          Forget it
        </Button>
      </div>
    </Alert>
  );
}
