import { GlobeIcon, LockIcon } from '../shell/icons.tsx';
import type { Site } from './site-words.ts';
import styles from '../shell/page.module.css';

export function VisibilityWord({ of: visibility }: { of: Site['visibility'] }) {
  return (
    <span className={styles['visibility']}>
      {visibility === 'private' ? <LockIcon size={15} /> : <GlobeIcon size={15} />}
      {visibility === 'private' ? 'Private' : 'Public'}
    </span>
  );
}
