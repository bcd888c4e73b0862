import { Badge } from '@mantine/core';
import { type Site, standingOf } from './site-words.ts';

export function StandingBadge({ of: site, now }: { of: Site; now: number }) {
  const [label, color] = standingOf(site, now);
  return <Badge color={color}>{label}</Badge>;
}
