import { exactly, hoursInWords } from '../../shell/time.ts';
import { resources, touchesOnlySites } from './access.ts';
import type { Draft } from './draft.ts';
import styles from './new-key.module.css';

type SummaryProps = { draft: Draft; now: number; isRegistryEmpty: boolean };

/** Describes the key in a sentence, which follows the input. */
export function Summary({ draft, now, isRegistryEmpty }: SummaryProps) {
  const reach = touchesOnlySites(draft.access) ? '' : ` on ${isRegistryEmpty ? none : where(draft)},`;
  return (
    <p className={styles['summary']} role="status">
      {draft.name.trim() === '' ? 'This key' : <bdi>{draft.name.trim()}</bdi>} may {what(draft)},{reach}{' '}
      {until(draft, now)}.
    </p>
  );
}

const none = 'no repository yet';

function what({ access }: Draft): string {
  const parts = resources.flatMap(({ id, says }) => {
    const level = access[id];
    return level === 'none' ? [] : [says[level]];
  });
  return parts.length === 0 ? 'do nothing yet' : inOneBreath(parts);
}

function where({ reach, repositories }: Draft): string {
  if (reach === 'all') return 'all repositories';
  if (repositories.length === 0) return none;
  return repositories.length <= 3 ? inOneBreath(repositories) : `${repositories.length} repositories`;
}

function until({ expiry }: Draft, now: number): string {
  if (expiry.kind === 'never') return 'until someone revokes it';
  if (expiry.kind === 'hours') return `for ${hoursInWords(expiry.hours)}`;
  const at = Date.parse(expiry.at);
  return Number.isNaN(at) || at <= now ? 'until a day you still have to choose' : `until ${exactly(at)}`;
}

/** Joins with semicolons, because a part may contain commas. */
function inOneBreath(parts: readonly string[]): string {
  const last = parts.at(-1) ?? '';
  return parts.length === 1 ? last : `${parts.slice(0, -1).join('; ')} and ${last}`;
}
