import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';

/**
 * SHA-256 of a file. The browser computes it where it can: over plain HTTP only for this machine, and with the whole file
 * in memory. Otherwise it is computed here, piece by piece.
 */
const maxInMemory = 64 * 1024 * 1024;
const pieceBytes = 4 * 1024 * 1024;

export async function sha256Of(file: Blob, signal: AbortSignal): Promise<string> {
  // The type says that it is always there; on plain http it is not.
  const subtle: typeof globalThis.crypto.subtle | undefined = globalThis.crypto.subtle;
  if (subtle !== undefined && file.size <= maxInMemory)
    return bytesToHex(new Uint8Array(await subtle.digest('SHA-256', await file.arrayBuffer())));
  const hash = sha256.create();
  for (let at = 0; at < file.size; at += pieceBytes) {
    signal.throwIfAborted();
    hash.update(new Uint8Array(await file.slice(at, at + pieceBytes).arrayBuffer()));
  }
  return bytesToHex(hash.digest());
}

export function sha256OfText(text: string): string {
  return bytesToHex(sha256(new TextEncoder().encode(text)));
}
