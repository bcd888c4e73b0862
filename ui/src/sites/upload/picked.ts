/** The dropped or chosen files, before any check. */
export type PickedFile = { readonly path: string; readonly file: File };

export type Picked =
  | {
      readonly kind: 'folder';
      readonly name: string;
      readonly files: readonly PickedFile[];
      /** The page that the address leads to, where there is no index.html. */
      readonly startPage?: string | null;
      /** Taken out because they cannot be published, each with its problem. */
      readonly without?: readonly { readonly path: string; readonly problem: string }[];
    }
  | { readonly kind: 'archive' | 'page'; readonly name: string; readonly file: File };

/** The types that a single file is sent as, by how its name ends. */
const singles = [
  [/\.zip$/i, 'archive', 'application/zip'],
  [/\.(?:tgz|tar\.gz)$/i, 'archive', 'application/gzip'],
  [/\.html?$/i, 'page', 'text/html'],
] as const;

export function typeOf(fileName: string): string | undefined {
  return singles.find(([ending]) => ending.test(fileName))?.[2];
}

/** A page alone is the start page of its site; null where it is called so already, and where there is more than one. */
export function renamedPage(picked: Picked): string | null {
  return picked.kind === 'page' && picked.file.name !== 'index.html' ? picked.file.name : null;
}

/** One file alone: an archive, a page, or a folder with one file in it. */
function pickedFile(file: File): Picked {
  const known = singles.find(([ending]) => ending.test(file.name));
  if (known === undefined) return { kind: 'folder', name: '', files: [{ path: file.name, file }] };
  return { kind: known[1], name: file.name.replace(known[0], ''), file };
}

/** From `<input type=file>`, with or without `webkitdirectory`. */
export function pickedFromInput(chosen: readonly File[]): Picked | null {
  const [first] = chosen;
  if (first === undefined) return null;
  if (chosen.length === 1 && first.webkitRelativePath === '') return pickedFile(first);
  const files = chosen.map((file) => ({
    path: file.webkitRelativePath === '' ? file.name : withoutFirst(file.webkitRelativePath),
    file,
  }));
  return { kind: 'folder', name: first.webkitRelativePath.split('/', 1)[0] ?? '', files };
}

/** A folder that is being read: the number of files so far, and whether they are still needed. */
type Reading = { readonly signal: AbortSignal; readonly tell: (files: number) => void };

const tellEvery = 50;

/**
 * From a drop. The browser gives access only during the event, so nothing is awaited before all entries are read.
 * @throws DOMException if a file cannot be read; an AbortError if it was stopped
 */
export async function pickedFromDrop(transfer: DataTransfer, reading: Reading): Promise<Picked | null> {
  const dropped = [...transfer.items]
    .filter(({ kind }) => kind === 'file')
    .map((item) => item.webkitGetAsEntry() ?? item.getAsFile())
    .filter((one) => one !== null);
  const [first] = dropped;
  if (first === undefined) return null;
  if (dropped.length === 1) {
    if (first instanceof File) return pickedFile(first);
    if (isFile(first)) return pickedFile(await fileOf(first));
    const files = await filesIn([first], reading);
    return {
      kind: 'folder',
      name: first.name,
      files: files.map((one) => ({ ...one, path: withoutFirst(one.path) })),
    };
  }
  return { kind: 'folder', name: '', files: await filesIn(dropped, reading) };
}

async function filesIn(
  dropped: readonly (FileSystemEntry | File)[],
  { signal, tell }: Reading,
): Promise<PickedFile[]> {
  const files: PickedFile[] = [];
  async function take(one: FileSystemEntry | File, before: string): Promise<void> {
    signal.throwIfAborted();
    const path = before + one.name;
    if (one instanceof File || isFile(one)) {
      files.push({ path, file: one instanceof File ? one : await fileOf(one) });
      if (files.length % tellEvery === 0) tell(files.length);
    } else if (isFolder(one)) {
      await takeAll(one.createReader(), `${path}/`);
    }
  }
  async function takeAll(reader: FileSystemDirectoryReader, before: string): Promise<void> {
    for (;;) {
      // A hundred at a time; none is the end.
      const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
      if (some.length === 0) return;
      for (const one of some) await take(one, before);
    }
  }
  for (const one of dropped) await take(one, '');
  signal.throwIfAborted();
  return files;
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((done, fail) => entry.file(done, fail));

function withoutFirst(path: string): string {
  return path.slice(path.indexOf('/') + 1);
}
