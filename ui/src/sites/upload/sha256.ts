/**
 * SHA-256 of a file (FIPS 180-4). The browser's own where it has one: on plain http that is not this machine it has none,
 * and it wants the whole file in memory; then it is reckoned here, piece by piece.
 */
const maxInMemory = 64 * 1024 * 1024;
const pieceBytes = 4 * 1024 * 1024;

export async function sha256Of(file: Blob, signal: AbortSignal): Promise<string> {
  // The type says that it is always there; on plain http it is not.
  const subtle: typeof globalThis.crypto.subtle | undefined = globalThis.crypto.subtle;
  if (subtle !== undefined && file.size <= maxInMemory)
    return hex(new Uint8Array(await subtle.digest('SHA-256', await file.arrayBuffer())));
  const sum = createSha256();
  for (let at = 0; at < file.size; at += pieceBytes) {
    signal.throwIfAborted();
    sum.add(new Uint8Array(await file.slice(at, at + pieceBytes).arrayBuffer()));
  }
  return sum.end();
}

export function createSha256(): { add(bytes: Uint8Array): void; end(): string } {
  const state = Uint32Array.of(
    0x6a09e667,
    0xbb67ae85,
    0x3c6ef372,
    0xa54ff53a,
    0x510e527f,
    0x9b05688c,
    0x1f83d9ab,
    0x5be0cd19,
  );
  const words = new Int32Array(64);
  const rest = new Uint8Array(64);
  let held = 0;
  let length = 0;

  function add(bytes: Uint8Array): void {
    length += bytes.length;
    let at = 0;
    if (held > 0) {
      at = Math.min(64 - held, bytes.length);
      rest.set(bytes.subarray(0, at), held);
      held += at;
      if (held < 64) return;
      mix(state, words, rest, 0);
      held = 0;
    }
    for (; at + 64 <= bytes.length; at += 64) mix(state, words, bytes, at);
    rest.set(bytes.subarray(at));
    held = bytes.length - at;
  }

  return {
    add,
    end() {
      const bits = length * 8;
      const tail = new Uint8Array((held < 56 ? 64 : 128) - held);
      tail[0] = 0x80;
      const view = new DataView(tail.buffer);
      view.setUint32(tail.length - 8, Math.floor(bits / 2 ** 32));
      view.setUint32(tail.length - 4, bits >>> 0);
      add(tail);
      return [...state].map((word) => word.toString(16).padStart(8, '0')).join('');
    },
  };
}

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const roots = Int32Array.from(primes(64), (prime) => ((Math.cbrt(prime) % 1) * 2 ** 32) | 0);

function primes(count: number): number[] {
  const found: number[] = [];
  for (let one = 2; found.length < count; one += 1) {
    if (found.every((prime) => one % prime !== 0)) found.push(one);
  }
  return found;
}

/** Takes one block of 64 bytes into the state. Indices are within their arrays by construction, hence the zeros. */
function mix(state: Uint32Array, w: Int32Array, bytes: Uint8Array, at: number): void {
  for (let i = 0; i < 16; i += 1) {
    const j = at + i * 4;
    w[i] =
      ((bytes[j] ?? 0) << 24) |
      ((bytes[j + 1] ?? 0) << 16) |
      ((bytes[j + 2] ?? 0) << 8) |
      (bytes[j + 3] ?? 0);
  }
  for (let i = 16; i < 64; i += 1) {
    const x = w[i - 15] ?? 0;
    const y = w[i - 2] ?? 0;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = ((w[i - 16] ?? 0) + s0 + (w[i - 7] ?? 0) + s1) | 0;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i += 1) {
    const S1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + S1 + ((e & f) ^ (~e & g)) + (roots[i] ?? 0) + (w[i] ?? 0)) | 0;
    const S0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (S0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i] = ((state[i] ?? 0) + value) | 0;
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
