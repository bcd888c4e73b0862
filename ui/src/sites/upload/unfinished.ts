/**
 * A digest upload that is not finished, kept across a reload: choosing the same folder sends what is missing. Holds ids and a digest, but no secret and no file.
 */
export type Unfinished = {
  readonly siteId: string;
  readonly uploadId: string;
  /** SHA-256 of what was announced. */
  readonly announced: string;
  /** The name of the folder. */
  readonly name: string;
  /** True: the site was made for this upload and has nothing yet. */
  readonly isNew: boolean;
};

/** Each has its own entry, so that uploads in several tabs do not interfere. */
const placeOf = (uploadId: string) => `postern-upload/${uploadId}`;

export function unfinished(): Unfinished[] {
  return Object.keys(localStorage)
    .filter((name) => name.startsWith(placeOf('')))
    .map((name) => parsed(localStorage.getItem(name)))
    .filter(isUnfinished);
}

export function remember(upload: Unfinished): void {
  localStorage.setItem(placeOf(upload.uploadId), JSON.stringify(upload));
}

export function forget({ uploadId }: Unfinished): void {
  localStorage.removeItem(placeOf(uploadId));
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch {
    return null;
  }
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
