/**
 * What a person sees on a terminal in place of the data: few columns, names rather than ids, and times as distances.
 * Pipes, --json and --fields have the data as it is.
 */
type Fields = Readonly<Record<string, unknown>>;
type View = (item: Fields) => Fields;

const views: Readonly<Record<string, View>> = {
  'sites list': ({ name, id, visibility, status, expiresAt, url, link }) => ({
    name,
    id,
    visibility,
    status,
    expires: expiresAt,
    address: visibility === 'private' ? link : url,
  }),
  'env list': ({ uuid, repository, branch, status, expiresAt }) => ({
    name: uuid,
    repository,
    branch,
    status,
    'lease ends': expiresAt,
  }),
  'versions list': ({ number, isLive, fileCount, sizeBytes, publishedAt }) => ({
    number,
    live: isLive,
    files: fileCount,
    bytes: sizeBytes,
    published: publishedAt,
  }),
  'builds list': ({ id, repository, branch, status, createdAt, message }) => ({
    id,
    repository,
    branch,
    status,
    created: createdAt,
    message,
  }),
  whoami: ({
    principal,
    authMethod,
    keyName,
    keyType,
    effectiveScopes,
    scopes,
    repositories,
    ...others
  }) => ({
    name: principal,
    'signed in with': signInText(authMethod, `the ${wordOf(keyType)} key ${wordOf(keyName)}`),
    scopes: effectiveScopes ?? scopes,
    repositories,
    roles: others['roles'],
    expires: others['expiresAt'],
    'may do it': isFields(others['decision']) ? others['decision']['allowed'] : undefined,
  }),
};

const maxColumns = 6;

/** The data of a verb as a person reads it; undefined = as it is. */
export function forPeople(verb: string, data: unknown): unknown {
  const view = views[verb];
  if (view === undefined) return undefined;
  if (Array.isArray(data)) return data.map((item) => (isFields(item) ? view(item) : item));
  return isFields(data) ? view(data) : undefined;
}

export function fewColumns(columns: readonly string[]): readonly string[] {
  return columns.slice(0, maxColumns);
}

/** The label of a field: `expires at` for `expiresAt`. */
export function labelOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** The text of a cell: a time relative to now, a person or a repository by name. */
export function inWords(value: unknown, now: number): unknown {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return timeIn(value, now) ?? value;
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(' ');
  if (!isFields(value)) return value;
  const { name, fullName, number, mode } = value;
  if (typeof mode === 'string' && mode === 'all') return 'all';
  return [name, fullName, number].find((one) => typeof one === 'string' || typeof one === 'number') ?? value;
}

const units = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;
/** Beyond it, a date says more than a number of days. */
const maxDistanceMs = 60 * 86_400_000;

function timeIn(text: string, now: number): string | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(text)) return undefined;
  const ms = Date.parse(text) - now;
  if (Math.abs(ms) > maxDistanceMs) return text.slice(0, 10);
  const [unit, size] = units.find(([, one]) => Math.abs(ms) >= one) ?? [];
  if (unit === undefined) return 'now';
  const count = Math.floor(Math.abs(ms) / size);
  const distance = `${count} ${unit}${count === 1 ? '' : 's'}`;
  return ms > 0 ? `in ${distance}` : `${distance} ago`;
}

/** What a request is signed in with. `key` describes the key, where it is one. */
export function signInText(method: unknown, key: string): string {
  if (method === 'api_key') return key;
  return method === 'federated' ? `an ID token for ${key}` : 'an access token';
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
