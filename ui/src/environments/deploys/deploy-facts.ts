import { durationInWords } from '../../shell/time.ts';
import type { Deploy } from '../environment-words.ts';

/** Time from its creation to its end, or to now while it runs; null while it is queued. */
export function tookWords({ startedAt, endedAt }: Deploy, now: number): string | null {
  if (startedAt === null) return null;
  const ms = Math.max(0, (endedAt === null ? now : Date.parse(endedAt)) - Date.parse(startedAt));
  return endedAt === null ? `under way for ${durationInWords(ms)}` : `took ${durationInWords(ms)}`;
}

export function deployCreator({ createdBy }: Deploy, me: string | undefined): string {
  if (createdBy === null) return 'Postern';
  if (createdBy.kind === 'service_key') return `Key ${createdBy.name ?? createdBy.id}`;
  return createdBy.id === me ? 'You' : (createdBy.name ?? 'Unknown user');
}
