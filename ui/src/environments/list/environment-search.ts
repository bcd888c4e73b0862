import { searchTextFrom } from '../../lists/search-text.ts';
import { type Environment, statusWords } from '../environment-words.ts';

/** What of the list is shown, kept in the address. One's own that are not torn down, unless it says otherwise. */
export type EnvironmentSearch = {
  readonly whose?: 'all';
  readonly repository?: string;
  readonly state?: EnvironmentState;
  readonly search?: string;
  readonly page?: number;
};

/** What a reader looks for: several statuses under one name. */
const states = {
  deployed: ['deployed'],
  under_way: ['queued', 'building', 'built', 'deploying'],
  failed: ['error', 'config_error'],
  idle: ['paused', 'asleep'],
  torn_down: ['tearing_down', 'torn_down'],
} as const satisfies Readonly<Record<string, readonly Environment['status'][]>>;
export type EnvironmentState = keyof typeof states;

export const stateLabels: Readonly<Record<EnvironmentState, string>> = {
  deployed: 'Deployed',
  under_way: 'Under way',
  failed: 'Failed',
  idle: 'Paused or asleep',
  torn_down: 'Torn down',
};

function isState(value: unknown): value is EnvironmentState {
  return typeof value === 'string' && Object.hasOwn(states, value);
}

/** The statuses that the server leaves out, as it is asked; undefined: its own default, which is those torn down. */
export function excludedBy(state: EnvironmentState | undefined): string | undefined {
  if (state === undefined) return undefined;
  const wanted: readonly string[] = states[state];
  return Object.keys(statusWords)
    .filter((status) => !wanted.includes(status))
    .join();
}

export function environmentSearch(raw: Record<string, unknown>): EnvironmentSearch {
  // An address may hold a number where a name is meant.
  const search = typeof raw['search'] === 'number' ? String(raw['search']) : raw['search'];
  const { repository } = raw;
  const page = Number(raw['page']);
  return {
    ...(raw['whose'] === 'all' ? { whose: 'all' } : {}),
    ...(typeof repository === 'string' && repository !== '' ? { repository } : {}),
    ...(isState(raw['state']) ? { state: raw['state'] } : {}),
    ...(typeof search !== 'string' || search === '' ? {} : { search: searchTextFrom(search) }),
    ...(Number.isInteger(page) && page > 1 ? { page } : {}),
  };
}
