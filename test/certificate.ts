import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const isOpensslMissing = ((): boolean => {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return false;
  } catch {
    return true;
  }
})();

/** A key and its certificate, signed by an unknown authority whose certificate is not sent. */
export function certificateOfUnknownAuthority(): { key: Buffer; cert: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'postern-certificate-'));
  const at = (name: string) => join(folder, name);
  const run = (...args: string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  run('req', '-x509', ...newKey, '-subj', '/CN=authority', '-keyout', at('ca.key'), '-out', at('ca.pem'));
  run('req', ...newKey, '-subj', '/CN=server', '-keyout', at('key.pem'), '-out', at('request.pem'));
  const authority = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial'];
  run('x509', '-req', '-in', at('request.pem'), ...authority, '-out', at('cert.pem'));
  const made = { key: readFileSync(at('key.pem')), cert: readFileSync(at('cert.pem')) };
  rmSync(folder, { recursive: true });
  return made;
}
