import type { Schemas } from '../../api/contract.ts';
import { exactly } from '../../shell/time.ts';
import { accessFacts, isAccess } from '../environment-words.ts';

type Event = Schemas['AuditEvent'];

const deeds: Readonly<Record<string, string>> = {
  'environment.created': 'The Environment was created',
  'environment.changed': 'Settings changed',
  'environment.extended': 'The lease was extended',
  'environment.fell_asleep': 'It fell asleep because it was not used',
  'environment.torn_down': 'The teardown began',
  'environment.grant_issued': 'A browser got access',
  'environment.grant_refused': 'A browser was refused access',
  'build.created': 'A deploy was queued',
  'build.cancelled': 'A deploy was cancelled',
  'build.deployed': 'Deployed',
  'build.failed': 'A deploy failed',
};

/** Outcomes that the sentence already states. */
const saysOutcome = ['build.failed', 'environment.grant_refused'];

/** A sentence about the event. The name of an unknown event becomes one: “environment.was_moved” is “Was moved”. */
export function deedOf({ event, outcome }: Event): string {
  const deed = deeds[event] ?? wordsOf(event.replace(/^.*\./, ''), '_');
  return outcome === 'success' || saysOutcome.includes(event) ? deed : `${deed}: refused`;
}

/** The deploy that the event is about, or null. */
export function deployOf({ details }: Event): { readonly id: string; readonly sha: string | null } | null {
  const { build, sha } = details;
  return typeof build === 'string' ? { id: build, sha: typeof sha === 'string' ? sha : null } : null;
}

export function whoOf({ actor }: Event): string {
  if (actor.kind === 'system') return 'Postern';
  return actor.name ?? actor.id ?? '';
}

const fields: Readonly<Record<string, string>> = {
  access: 'Who may open it',
  autoTrack: 'Follow the branch',
  deployEnabled: 'Deploys',
  env: 'Variables',
  expiresAt: 'Lease ends',
  initEnv: 'Variables of builds',
  sha: 'Commit',
};
const onOff: Readonly<Record<string, readonly [on: string, off: string]>> = {
  deployEnabled: ['on', 'paused'],
};

/** The fields that an event changed, “Who may open it: Only its creator → Everyone who can sign in”. */
export function changesIn({ details: { before, after } }: Event): string[] {
  if (!isTree(before) || !isTree(after)) return [];
  return Object.entries(after)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]))
    .map(
      ([name, value]) =>
        `${fields[name] ?? wordsOf(name)}: ${inText(name, before[name])} → ${inText(name, value)}`,
    );
}

function isTree(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function inText(name: string, value: unknown): string {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'boolean') {
    const [on, off] = onOff[name] ?? ['on', 'off'];
    return value ? on : off;
  }
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ') || '–';
  if (typeof value !== 'string') return JSON.stringify(value);
  if (isAccess(value)) return accessFacts[value];
  return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? exactly(Date.parse(value)) : value;
}

/** “trackDefaultBranches” as “Track default branches”. */
function wordsOf(name: string, between = /(?<=[a-z])(?=[A-Z])/ as RegExp | string): string {
  const words = name.split(between).join(' ').toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
