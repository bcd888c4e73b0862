import { Alert } from '@mantine/core';
import sizes from './upload.module.css';

/** How a check or a stopped upload ended: nothing was published, and nothing is wrong. */
export function PublishedNothing({ said }: { said: 'checked' | 'stopped' | null }) {
  if (said === null) return null;
  return said === 'checked' ? (
    <Alert className={sizes['whole']} color="green" title="Nothing is wrong with it">
      The server checked every file and kept nothing. It can be published as it is.
    </Alert>
  ) : (
    <Alert className={sizes['whole']} color="yellow" title="The upload was stopped">
      Nothing was published, and nothing of it is kept.
    </Alert>
  );
}
