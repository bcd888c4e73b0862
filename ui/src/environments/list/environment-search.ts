import { searchTextFrom } from '../../lists/search-text.ts';
import { type Environment, statusWords } from '../environment-words.ts';

/** Filters of the list, kept in the address. The default: the user's own Environments that are not torn down. */
export type EnvironmentSearch = {
  readonly whose?: 'all';
  readonly repository?: string;
  readonly state?: EnvironmentState;
  readonly search?: string;
  readonly page?: number;
};

/** States to filter by. Each stands for several statuses. */
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

/** Statuses that the request excludes. Undefined: the server's default, which excludes torn-down Environments. */
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
