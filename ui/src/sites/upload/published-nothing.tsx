import { Alert, Text } from '@mantine/core';
import sizes from './upload.module.css';
import type { UploadState } from './use-upload.ts';

/** The result of a check or a stopped upload: nothing was published. */
export function PublishedNothing({ state }: { state: UploadState }) {
  if (state.kind === 'stopped')
    return (
      <Alert className={sizes['whole']} color="yellow" title="The upload was stopped">
        Nothing was published, and the server keeps nothing.
      </Alert>
    );
  if (state.kind !== 'checked') return null;
  if (state.warnings.length > 0)
    return (
      <Alert className={sizes['whole']} color="yellow" title="It can be published, with a warning">
        {state.warnings.map(({ message }) => (
          <Text size="sm" key={message}>
            {message}
          </Text>
        ))}
      </Alert>
    );
  return (
    <Alert className={sizes['whole']} color="green" title="The check found no problems">
      The server checked every file and kept nothing. It can be published as it is.
    </Alert>
  );
}
