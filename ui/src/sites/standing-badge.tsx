import { Badge } from '@mantine/core';
import styles from './sites.module.css';
import { type Site, standingOf } from './site-words.ts';

export function StandingBadge({ of: site, now }: { of: Site; now: number }) {
  const [label, color] = standingOf(site, now);
  return (
    <Badge className={styles['badge']} variant="light" color={color} tt="none" fw={600}>
      {label}
    </Badge>
  );
}
