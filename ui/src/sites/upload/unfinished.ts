/**
 * A digest upload that is not finished, remembered over a reload: the same folder chosen again goes on with what is
 * missing. Ids and a digest; nothing secret, and nothing of the files.
 */
export type Unfinished = {
  readonly siteId: string;
  readonly uploadId: string;
  /** SHA-256 of what was announced. */
  readonly announced: string;
  /** Of the folder, as its owner knows it. */
  readonly name: string;
  /** True: the site was made for this upload and has nothing yet. */
  readonly isNew: boolean;
};

const place = 'postern-upload';

export function unfinished(): Unfinished | null {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(place) ?? 'null');
    return isUnfinished(found) ? found : null;
  } catch {
    return null;
  }
}

export function remember(upload: Unfinished): void {
  localStorage.setItem(place, JSON.stringify(upload));
}

export function forget(): void {
  localStorage.removeItem(place);
}

function isUnfinished(value: unknown): value is Unfinished {
  return (
    typeof value === 'object' &&
    value !== null &&
    'siteId' in value &&
    typeof value.siteId === 'string' &&
    'uploadId' in value &&
    typeof value.uploadId === 'string' &&
    'announced' in value &&
    typeof value.announced === 'string' &&
    'name' in value &&
    typeof value.name === 'string' &&
    'isNew' in value &&
    typeof value.isNew === 'boolean'
  );
}
