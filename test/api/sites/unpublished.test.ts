import { expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { hour } from '../../../src/core/clock.ts';
import { openHarness } from '../../harness.ts';
import { upload } from './uploads.ts';

test('T51 archives that unpack to much and are never published fill the disk no further than the quota and one archive', async () => {
  const h = await openHarness({ changesPerMinute: 10_000 });
  const ada = await h.person('Ada');
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag, value } = await sitesConfig.read();
  const quotas = { ...value.quotas, bytesPerOwner: 1_000_000 };
  const limits = { ...value.upload, maxUploadBytes: 400_000 };
  await sitesConfig.put(systemAuditContext, etag, {
    ...value,
    quotas,
    upload: limits,
    visibility: { ...value.visibility, allowPrivate: false },
  });
  const send = (letter: string, visibility: 'public' | 'private', more = {}) =>
    upload(h, ada, { 'index.html': letter.repeat(300_000), ...more }, { visibility });
  const wrong = async (letter: string) => (await send(letter, 'public', { '.env': 'A=1' })).error.code;
  const unpublished = async (letter: string) => (await send(letter, 'private')).error.code;

  // Nothing of what is refused for what it is stays.
  for (const letter of 'uvwxyz') expect(await wrong(letter)).toBe('upload_rejected');
  const codes: string[] = [];
  for (const letter of 'abcdef') codes.push(await unpublished(letter));
  const refused = Array.from({ length: 4 }, () => 'visibility_not_allowed');
  expect(codes).toEqual([...refused, 'quota_exceeded', 'quota_exceeded']);
  h.clock.advance(hour);
  expect((await send('g', 'public')).status).toBe(201);
  // What was published counts as kept and no more as waiting.
  expect((await send('h', 'public')).status).toBe(201);
  expect((await send('i', 'public')).status).toBe(201);
  await h.close();
});
