import { Modal } from '@mantine/core';
import type { Current, DocumentProps, Version } from './document-api.ts';
import { Review } from './review.tsx';

type Props = DocumentProps & {
  readonly current: Current;
  /** The version to go back to; undefined: the dialog is closed. */
  readonly to: Version | undefined;
  readonly onReverted: (now: Current) => void;
  /** Someone else changed the document since it was read. */
  readonly onStale: () => void;
  readonly onClose: () => void;
};

/** Shows what an earlier version would change, and saves it as a new version. */
export function RevertDialog({ api, sections, current, to, onReverted, onStale, onClose }: Props) {
  return (
    <Modal
      opened={to !== undefined}
      size="lg"
      title={`Revert to version ${to?.version ?? ''}?`}
      onClose={onClose}
    >
      {to !== undefined && (
        <Review
          api={api}
          sections={sections}
          base={current}
          next={to.value}
          save={() => api.revert(to.version, current.etag)}
          confirm="Revert for everyone"
          onSaved={onReverted}
          onConflict={onStale}
          onMistake={onStale}
          onClose={onClose}
        />
      )}
    </Modal>
  );
}
