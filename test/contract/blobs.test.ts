import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { fileBlobs } from '../../src/platform/blobs/file-blobs.ts';
import { blobsContract } from './blobs.ts';

// The same suite runs on an S3 server: test/objects.
const folder = mkdtempSync(join(tmpdir(), 'postern-blobs-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('files', () => {
  const blobs = fileBlobs(join(folder, 'files'));
  beforeAll(() => blobs.prepare());
  blobsContract({ blobs: () => blobs, waiting: () => readdir(join(folder, 'files', 'incoming')) });
});
