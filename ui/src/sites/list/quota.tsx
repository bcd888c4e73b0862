import { Progress } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';
import { bytesInWords } from '../../shell/bytes.ts';
import styles from './sites-page.module.css';

/** How much of what one may have is in use. */
export function Quota({
  sitesUsed,
  sitesPerOwner,
  bytesUsed,
  bytesPerOwner,
}: Schemas['SiteCapabilities']['quotas']) {
  const share = Math.min(100, (bytesUsed / bytesPerOwner) * 100);
  return (
    <div className={styles['quota']}>
      <p>
        <b>{sitesUsed}</b> of {sitesPerOwner} sites · <b>{bytesInWords(bytesUsed)}</b> of{' '}
        {bytesInWords(bytesPerOwner)}
      </p>
      <Progress.Root size="sm" aria-hidden="true">
        <Progress.Section value={share} color={share > 90 ? 'red' : 'blue'} withAria={false} />
      </Progress.Root>
    </div>
  );
}
