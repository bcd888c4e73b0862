import { Transform } from 'node:stream';
import type { Blob, Blobs } from '../../../platform/blobs/blobs.ts';
import type { KeyFormat } from '../../keys/keys.ts';
import { type ArchiveEntry, ArchiveRefused } from './archive.ts';
import { keyScan, keysIn } from './key-scan.ts';
import { createNameRegister, nameEntry, type PathProblemCode } from './paths.ts';

/**
 * Takes what an upload holds: every name judged, every byte counted, scanned and kept under its digest. Goes on after a
 * bad file, so that one answer names them all; stops at once where going on would cost more than a whole good upload.
 */
export type UploadLimits = {
  /** Files and folders. */
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  /** All files together, unpacked. */
  readonly maxExtractedBytes: number;
  /** Lower case, without the dot. A name without an extension is always taken. */
  readonly allowedExtensions: readonly string[];
};

export type UploadProblem = {
  /** As the upload spells it, shortened; empty when the whole upload is meant. */
  readonly path: string;
  readonly code:
    | PathProblemCode
    | 'bad_archive'
    | 'bad_entry'
    | 'name_collision'
    | 'extension_not_allowed'
    | 'file_too_large'
    | 'upload_too_large'
    | 'too_many_files'
    | 'too_many_problems'
    | 'credential_in_content'
    | 'empty';
  /** Completes the sentence "This file …" or "The upload …", and says what to do. */
  readonly problem: string;
};

export type Received = {
  /** By path, in code point order. Only to be published when `problems` is empty. */
  readonly files: ReadonlyMap<string, Blob>;
  readonly problems: readonly UploadProblem[];
};

export type ReceiveDeps = {
  readonly blobs: Pick<Blobs, 'write'>;
  readonly format: KeyFormat;
  /** Hears of each of our keys that the upload holds. */
  readonly onKey: (value: string) => void;
};

const mostProblems = 100;

export async function receive(
  entries: AsyncIterable<ArchiveEntry>,
  limits: UploadLimits,
  deps: ReceiveDeps,
): Promise<Received> {
  const upload = createUpload(limits, deps);
  try {
    for await (const entry of entries) await upload.take(entry);
    upload.finish();
  } catch (error) {
    if (error instanceof ArchiveRefused) upload.refuse('', 'bad_archive', error.message);
    else if (!(error instanceof Stop)) throw error;
  }
  return upload.received();
}

/** Thrown after its problem is written down: nothing more of this upload is looked at. */
class Stop extends Error {}

function createUpload(limits: UploadLimits, { blobs, format, onKey }: ReceiveDeps) {
  const problems: UploadProblem[] = [];
  const register = createNameRegister();
  let files = new Map<string, Blob>();
  let entries = 0;
  let bytes = 0;

  function refuse(path: string, code: UploadProblem['code'], problem: string): void {
    problems.push({ path: shown(path, format), code, problem });
    if (problems.length < mostProblems) return;
    problems.push({ path: '', code: 'too_many_problems', problem: 'has more problems than are listed here' });
    throw new Stop();
  }

  function stop(code: UploadProblem['code'], problem: string): never {
    refuse('', code, problem);
    throw new Stop();
  }

  /** Counts before anything else sees the bytes; what is too long is read to its end and goes nowhere. */
  function counted(): { stream: Transform; isTooLong: () => boolean } {
    let own = 0;
    const isTooLong = () => own > limits.maxFileBytes;
    const stream = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        own += chunk.length;
        bytes += chunk.length;
        if (bytes > limits.maxExtractedBytes) return done(new TooMuch());
        done(null, isTooLong() ? undefined : chunk);
      },
    });
    return { stream, isTooLong };
  }

  async function takeFile(name: string, path: string, entry: ArchiveEntry): Promise<void> {
    const { stream, isTooLong } = counted();
    let hasKey = false;
    const scan = keyScan(format, (value) => {
      hasKey = true;
      onKey(value);
    });
    let blob: Blob;
    try {
      const source = await entry.open();
      blob = await blobs.write(chain(source, stream, scan));
    } catch (error) {
      if (error instanceof TooMuch)
        stop('upload_too_large', `unpacks to more than ${limits.maxExtractedBytes} bytes`);
      if (!(error instanceof ArchiveRefused)) throw error;
      return refuse(name, 'bad_entry', error.message);
    }
    if (isTooLong()) return refuse(name, 'file_too_large', `is larger than ${limits.maxFileBytes} bytes`);
    if (hasKey)
      return refuse(name, 'credential_in_content', 'contains an API key; revoke that key and remove it');
    files.set(path, blob);
  }

  return {
    refuse,
    async take(entry: ArchiveEntry): Promise<void> {
      entries += 1;
      if (entries > limits.maxFiles)
        stop('too_many_files', `has more than ${limits.maxFiles} files and folders`);
      const named = nameEntry(entry.name);
      if (named.kind === 'ignored') return;
      for (const value of keysIn(entry.name, format)) {
        onKey(value);
        return refuse(entry.name, 'credential_in_content', 'has an API key in its name; revoke that key');
      }
      if (named.kind === 'refused') return refuse(entry.name, named.code, named.problem);
      if (entry.problem !== undefined) return refuse(entry.name, 'bad_entry', entry.problem);
      const clash = register.add(named.kind, named.path);
      if (clash !== undefined) return refuse(entry.name, 'name_collision', clash);
      if (named.kind === 'directory') return;
      const extension = extensionOf(named.path);
      if (extension !== undefined && !limits.allowedExtensions.includes(extension))
        return refuse(
          entry.name,
          'extension_not_allowed',
          `ends in .${extension}, which is not allowed here`,
        );
      await takeFile(entry.name, named.path, entry);
    },
    /** What can only be said when everything is there. */
    finish(): void {
      if (files.size === 0 && problems.length === 0) stop('empty', 'holds no files');
      files = new Map([...withoutTopFolder(files)].sort(([one], [other]) => (one < other ? -1 : 1)));
      for (const path of files.keys()) {
        const named = nameEntry(path);
        if (named.kind === 'refused') refuse(path, named.code, named.problem);
      }
    },
    received: (): Received => ({ files, problems }),
  };
}

class TooMuch extends Error {}

/** One stream after another; a failure anywhere is a failure of the last. */
function chain(source: NodeJS.ReadableStream, ...steps: readonly Transform[]): Transform {
  let last: NodeJS.ReadableStream = source;
  for (const step of steps) {
    last.on('error', (error: Error) => step.destroy(error));
    last = last.pipe(step);
  }
  return last as Transform;
}

/** A folder that was packed as one: `site/index.html` means the site's `index.html`, when that folder is all there is. */
function withoutTopFolder(files: ReadonlyMap<string, Blob>): ReadonlyMap<string, Blob> {
  const tops = new Set([...files.keys()].map((path) => path.split('/')[0]));
  const [top] = tops;
  if (tops.size !== 1 || top === undefined || !files.has(`${top}/index.html`)) return files;
  return new Map([...files].map(([path, blob]) => [path.slice(top.length + 1), blob]));
}

/** Undefined for `LICENSE` and `.nojekyll`, which have none. */
function extensionOf(path: string): string | undefined {
  return /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase();
}

/** Fit to be shown: whatever hides in a name is spelled out, and a key in it is not repeated. */
function shown(path: string, format: KeyFormat): string {
  let text = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  for (const value of keysIn(text, format)) text = text.replace(value, `${format.prefixOf('personal')}…`);
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
    return `\\u{${code}}`;
  });
}
