/** Writes a tar (POSIX.1-2017, pax) of files without reading them: the browser puts the pieces together as it sends them. */
export type TarFile = { readonly name: string; readonly content: Blob };

const block = 512;

export function tarOf(files: readonly TarFile[]): Blob {
  const parts: (Blob | Uint8Array<ArrayBuffer>)[] = [];
  for (const { name, content } of files) {
    if (!isShort(name)) {
      const record = paxPath(name);
      parts.push(header('pax', record.length, 'x'), record, padding(record.length));
    }
    parts.push(header(isShort(name) ? name : 'file', content.size, '0'), content, padding(content.size));
  }
  return new Blob([...parts, new Uint8Array(2 * block)]);
}

/** The same, gzipped: what the API takes as a whole site. */
export async function tarGzOf(files: readonly TarFile[]): Promise<Blob> {
  return await new Response(tarOf(files).stream().pipeThrough(new CompressionStream('gzip'))).blob();
}

/** Fits the header's own field: up to 100 characters of ASCII. */
function isShort(name: string): boolean {
  return name.length <= 100 && /^[\x20-\x7e]*$/.test(name);
}

/** `LENGTH path=NAME\n`, where the length counts itself. */
function paxPath(name: string): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder();
  const rest = text.encode(` path=${name}\n`).length;
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return text.encode(`${length} path=${name}\n`);
}

function header(name: string, size: number, type: '0' | 'x'): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(block);
  const text = new TextEncoder();
  const write = (at: number, value: string) => bytes.set(text.encode(value), at);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  write(0, name);
  write(100, octal(0o644, 7));
  write(108, octal(0, 7));
  write(116, octal(0, 7));
  write(124, octal(size, 11));
  write(136, octal(0, 11));
  write(148, ' '.repeat(8));
  write(156, type);
  write(257, 'ustar\x0000');
  // Over the whole header, its own field taken as spaces.
  write(
    148,
    `${bytes
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
  );
  return bytes;
}

function padding(size: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array((block - (size % block)) % block);
}
