/** A page of `kib` KiB that compresses like prose, the same for both sides of a comparison. */
export function pageOf(kib: number): Buffer {
  const words = 'grant site key scope owner label version visible private public expiry audit store'.split(
    ' ',
  );
  let text = '<!doctype html><title>bench</title>\n';
  for (let at = 0; text.length < kib * 1024; at++) text += `${words[(at * 7 + (at >> 3)) % words.length]} `;
  return Buffer.from(text.slice(0, kib * 1024));
}
