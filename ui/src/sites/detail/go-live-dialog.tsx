import { Modal, Text } from '@mantine/core';
import { useRef } from 'react';
import { api, dataOf } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import type { Site } from '../site-words.ts';
import { Changes } from './changes.tsx';

type DialogProps = {
  readonly site: Site;
  /** Undefined: no dialog shows. */
  readonly number: number | undefined;
  readonly onClose: () => void;
};

/** Rolls back or forward after showing the changes. Nothing is uploaded. */
export function GoLiveDialog({ site, number, onClose }: DialogProps) {
  return (
    <Modal
      opened={number !== undefined}
      onClose={onClose}
      size="lg"
      title={`Make version ${number ?? ''} live?`}
    >
      {number !== undefined && <Question site={site} number={number} onClose={onClose} />}
    </Modal>
  );
}

function Question({ site, number, onClose }: DialogProps & { number: number }) {
  const before = site.version;
  /** Only while this digest is live, so that no other publication is overwritten. */
  const makeLive = async (next: number, live: string | undefined) =>
    await dataOf(
      api.POST('/sites/{id}/versions/{number}/publish', {
        params: {
          path: { id: site.id, number: String(next) },
          header: live === undefined ? {} : { 'If-Match': `"${live}"` },
        },
      }),
    );
  const made = useRef<string>(undefined);
  return (
    <Confirm
      act={async () => {
        made.current = (await makeLive(number, before?.digest)).version?.digest;
      }}
      said={`Version ${number} is live.`}
      {...(before !== null && {
        undo: {
          act: () => makeLive(before.number, made.current),
          said: `Version ${before.number} is live again.`,
        },
      })}
      refresh={['sites']}
      confirm="Make it live"
      keep={`Keep version ${before?.number ?? ''}`}
      isHarmless
      onClose={onClose}
    >
      <Text size="sm" mb="sm">
        Readers see it within a second, at the same address. Nothing is uploaded and nothing is lost: version{' '}
        {before?.number ?? 'before'} stays, and you can make it live again.
      </Text>
      <Changes siteId={site.id} number={number} />
    </Confirm>
  );
}
