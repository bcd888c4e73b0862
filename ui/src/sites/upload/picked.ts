/** What somebody dropped or chose, before anything is judged. */
export type PickedFile = { readonly path: string; readonly file: File };

export type Picked =
  | { readonly kind: 'folder'; readonly name: string; readonly files: readonly PickedFile[] }
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

/**
 * From a drop. What was dropped can be asked for only before the event is over, so nothing is awaited before all of it
 * was taken.
 */
export async function pickedFromDrop(transfer: DataTransfer): Promise<Picked | null> {
  const dropped = [...transfer.items]
    .filter(({ kind }) => kind === 'file')
    .map((item) => item.webkitGetAsEntry() ?? item.getAsFile())
    .filter((one) => one !== null);
  const [first] = dropped;
  if (first === undefined) return null;
  if (dropped.length === 1) {
    if (first instanceof File) return pickedFile(first);
    if (isFile(first)) return pickedFile(await fileOf(first));
    const files = await filesIn(first);
    return {
      kind: 'folder',
      name: first.name,
      files: files.map((one) => ({ ...one, path: withoutFirst(one.path) })),
    };
  }
  const files = await Promise.all(
    dropped.map(async (one) => (one instanceof File ? [{ path: one.name, file: one }] : await filesIn(one))),
  );
  return { kind: 'folder', name: '', files: files.flat() };
}

async function filesIn(entry: FileSystemEntry, before = ''): Promise<PickedFile[]> {
  const path = before + entry.name;
  if (isFile(entry)) return [{ path, file: await fileOf(entry) }];
  if (!isFolder(entry)) return [];
  const reader = entry.createReader();
  const files: PickedFile[] = [];
  for (;;) {
    // A hundred at a time; none is the end.
    const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
    if (some.length === 0) return files;
    for (const one of some) files.push(...(await filesIn(one, `${path}/`)));
  }
}

const isFile = (entry: FileSystemEntry): entry is FileSystemFileEntry => entry.isFile;
const isFolder = (entry: FileSystemEntry): entry is FileSystemDirectoryEntry => entry.isDirectory;
const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((done, fail) => entry.file(done, fail));

function withoutFirst(path: string): string {
  return path.slice(path.indexOf('/') + 1);
}
