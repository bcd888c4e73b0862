import { Button, Group, Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import { useEnding } from '../../shell/use-ending.ts';
import type { Site } from '../site-words.ts';
import styles from './detail.module.css';

type DialogProps = { readonly site: Site; readonly isOpen: boolean; readonly onClose: () => void };

/** Says who will see the site and what happens to its address, before the change. */
export function VisibilityDialog({ site, isOpen, onClose }: DialogProps) {
  const next = site.visibility === 'private' ? 'public' : 'private';
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title={next === 'public' ? 'Make this site public?' : 'Make this site private?'}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Question site={site} next={next} onClose={onClose} />
    </Modal>
  );
}

const effects = {
  public: [
    'Everyone who has the new address can open it, without signing in. Search engines may find it.',
    'Its live files are public. Only you can see earlier versions.',
    'It gets a new address immediately. The current address stops working for everyone and is never used again.',
    'Its link stays the same and leads to the new address.',
    'All browser grants end.',
  ],
  private: [
    'Only you can open it, in a browser where you are signed in. No colleague, administrator or key can.',
    'It gets a new address immediately. The public one answers 404 to everyone, and is never used again.',
    'Its link stays the same. Share the link, not the address.',
    'Copies that people saved or caches stored while it was public cannot be recalled.',
  ],
} as const;

function Question({ site, next, onClose }: Omit<DialogProps, 'isOpen'> & { next: 'public' | 'private' }) {
  const { run, error, isBusy } = useEnding({
    end: () =>
      unwrap(api.PATCH('/sites/{id}', { params: { path: { id: site.id } }, body: { visibility: next } })),
    said: `${site.name} is ${next}.`,
    list: 'sites',
    onClose,
    onDone: () => undefined,
  });
  return (
    <>
      <Text size="sm" mb="xs">
        <b>
          <bdi>{site.name}</bdi>
        </b>{' '}
        becomes {next}:
      </Text>
      <ul className={styles['points']}>
        {effects[next].map((effect) => (
          <li key={effect}>{effect}</li>
        ))}
      </ul>
      {error !== undefined && <Problem error={error} />}
      <Group justify="flex-end" mt="md" gap="sm">
        <Button variant="default" onClick={onClose} disabled={isBusy}>
          Leave it {site.visibility}
        </Button>
        <Button onClick={run} loading={isBusy}>
          Make it {next}
        </Button>
      </Group>
    </>
  );
}
