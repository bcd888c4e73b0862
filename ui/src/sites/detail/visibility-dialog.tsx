import { Modal, Text } from '@mantine/core';
import { api, unwrap } from '../../api/client.ts';
import { Confirm } from '../../shell/confirm.tsx';
import type { Site } from '../site-words.ts';
import shared from '../../shell/page.module.css';

type DialogProps = { readonly site: Site; readonly isOpen: boolean; readonly onClose: () => void };

/** Says who will see the site and what happens to its address, before the change. */
export function VisibilityDialog({ site: { id, name, visibility }, isOpen, onClose }: DialogProps) {
  const next = visibility === 'private' ? 'public' : 'private';
  return (
    <Modal opened={isOpen} onClose={onClose} title={`Make this site ${next}?`}>
      <Confirm
        act={() => unwrap(api.PATCH('/sites/{id}', { params: { path: { id } }, body: { visibility: next } }))}
        said={`${name} is ${next}.`}
        refresh={['sites']}
        confirm={`Make it ${next}`}
        keep={`Leave it ${visibility}`}
        isHarmless
        onClose={onClose}
      >
        <Text size="sm" mb="xs">
          <b>
            <bdi>{name}</bdi>
          </b>{' '}
          becomes {next}:
        </Text>
        <ul className={shared['points']}>
          {effects[next].map((effect) => (
            <li key={effect}>{effect}</li>
          ))}
        </ul>
      </Confirm>
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
