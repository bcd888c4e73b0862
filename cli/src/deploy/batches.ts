import { readFile } from 'node:fs/promises';
import type { HashedFile } from '../files/folder.ts';

/** Contents that one request sends: many small ones as a tar, a large one alone. */
export type Batch = readonly Content[];
type Content = Omit<HashedFile, 'mayHaveKey'>;

const maxBatchBytes = 8 * 1024 * 1024;
const maxBatchFiles = 500;

/** One file for each missing content, in batches. */
export function batchesOf(files: readonly Content[], missing: readonly string[]): Batch[] {
  const byDigest = new Map(files.map((file) => [file.sha256, file]));
  const batches: Content[][] = [];
  let open: Content[] = [];
  let bytes = 0;
  for (const digest of missing) {
    const file = byDigest.get(digest);
    if (file === undefined) continue;
    if (file.size > maxBatchBytes) {
      batches.push([file]);
      continue;
    }
    if (open.length === maxBatchFiles || (open.length > 0 && bytes + file.size > maxBatchBytes)) {
      batches.push(open);
      open = [];
      bytes = 0;
    }
    open.push(file);
    bytes += file.size;
  }
  return open.length === 0 ? batches : [...batches, open];
}

/** A ustar archive of the contents, each named by its SHA-256. */
export async function tarOf(batch: Batch): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (const { file, sha256 } of batch) {
    const content = await readFile(file);
    parts.push(headerOf(sha256, content.length), content, Buffer.alloc(-content.length & 511));
  }
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

function headerOf(name: string, size: number): Buffer {
  const header = Buffer.alloc(512);
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`;
  header.write(name, 0);
  header.write(octal(0o644, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(size, 12), 124);
  header.write(octal(0, 12), 136);
  header.write(' '.repeat(8), 148);
  header.write('0', 156);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}
