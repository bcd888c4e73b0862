import type { Schemas } from '../../api/contract.ts';

type Event = Schemas['AuditEvent'];

const deeds: Readonly<Record<string, string>> = {
  'environment.created': 'Created',
  'environment.changed': 'Changed',
  'environment.extended': 'Lease extended',
  'environment.torn_down': 'Teardown began',
  'build.created': 'Deploy queued',
  'build.cancelled': 'Deploy cancelled',
};

/** What happened, in words. An event that this page does not know is shown by its name. */
export function deedOf({ event, outcome }: Event): string {
  const deed = deeds[event] ?? event;
  return outcome === 'success' ? deed : `${deed}: refused`;
}

export function whoOf({ actor }: Event): string {
  if (actor.kind === 'system') return 'Postern';
  return actor.name ?? actor.id ?? '';
}

/** The fields that an event changed, “access: owner → members”. */
export function changesIn({ details: { before, after } }: Event): string[] {
  if (!isTree(before) || !isTree(after)) return [];
  return Object.entries(after)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]))
    .map(([name, value]) => `${name}: ${inText(before[name])} → ${inText(value)}`);
}

function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function inText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
