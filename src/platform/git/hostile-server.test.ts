import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isOpensslMissing } from '../../../test/certificate.ts';
import { gitHost, hostileAnswers, httpsGitServer } from '../../../test/git-servers.ts';
import { createOutbound } from '../outbound.ts';
import { gitIn } from './git.ts';

const mebibyte = 1024 * 1024;

/** Reads a file of a server that answers as `respond` does. */
async function readFrom(respond: ReturnType<typeof hostileAnswers>, bounds: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'postern-mirrors-'));
  const server = await httpsGitServer(folder, { respond });
  onTestFinished(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const git = gitIn(folder, {
    outbound: createOutbound({ allowsPrivate: true, resolve: async () => [{ address: '127.0.0.1' }] }),
    searchPath: process.env['PATH'] ?? '',
    caFile: server.caFile,
    ...bounds,
  });
  await git.prepare();
  const remote = { id: 'repo_1', cloneUrl: server.url('x.git'), credential: null };
  const answer = await git.readFile(remote, 'main', 'postern.yaml');
  const asked = server.seen.map(({ url }) => url);
  return { answer, asked, mirrors: readdirSync(folder).filter((name) => name.endsWith('.git')) };
}

/** The beginning of a pack (gitformat-pack(5)) with 1,000 objects, the first of `type` and `size` bytes. */
function packBegin(type: 'tree' | 'blob', size: number): Buffer {
  const head = Buffer.from('PACK\0\0\0\x02\0\0\x03\xe8', 'latin1');
  const bytes = [((type === 'tree' ? 2 : 3) << 4) | (size % 16)];
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80;
    bytes.push(rest % 128);
  }
  return Buffer.concat([head, Buffer.from(bytes)]);
}

describe.skipIf(isOpensslMissing)(`a git server that means harm, at ${gitHost}`, () => {
  test('another address that it names for the pack is not asked', async () => {
    async function* pack() {
      const empty = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
      yield Buffer.concat([empty, createHash('sha1').update(empty).digest()]);
    }
    const { answer, asked, mirrors } = await readFrom(hostileAnswers(pack(), { elsewhere: true }));
    expect(answer).toMatchObject({ kind: 'failed', reason: 'unreachable' });
    expect(asked).toContain('/x.git/git-upload-pack');
    expect(asked).not.toContain('/elsewhere.pack');
    expect(mirrors).toEqual([]);
  });

  test('a pack without end is cut off', async () => {
    async function* endless() {
      const block = randomBytes(32_767);
      yield Buffer.concat([packBegin('blob', 2 ** 40), Buffer.from([0x78, 0x01])]);
      // Blocks that are stored, not compressed (RFC 1951 section 3.2.4).
      while (true) yield Buffer.concat([Buffer.from([0, 0xff, 0x7f, 0x00, 0x80]), block]);
    }
    const { answer, mirrors } = await readFrom(hostileAnswers(endless()), { maxMirrorBytes: mebibyte });
    expect(answer).toMatchObject({ kind: 'failed', reason: 'too_large' });
    expect(mirrors).toEqual([]);
  });

  test('an object that fills the memory of git is cut off', async () => {
    const size = 128 * mebibyte;
    const zeros = deflateSync(Buffer.alloc(size));
    async function* pack() {
      yield packBegin('tree', size);
      for (let at = 0; at < zeros.length; at += 60_000) yield zeros.subarray(at, at + 60_000);
      // The next object does not come.
      await new Promise(() => undefined);
    }
    const { answer, mirrors } = await readFrom(hostileAnswers(pack()), { maxResidentBytes: 64 * mebibyte });
    expect(answer).toMatchObject({ kind: 'failed', reason: 'too_large' });
    expect(mirrors).toEqual([]);
  });
});
