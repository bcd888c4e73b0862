import { expect, test } from 'vitest';
import { systemAct } from '../../../src/core/caller.ts';
import { hour } from '../../../src/core/clock.ts';
import { openHarness } from '../../harness.ts';
import { upload } from './uploads.ts';

test('T51 archives that unpack to much and are never published fill the disk no further than the quota and one archive', async () => {
  const h = await openHarness({ changesPerMinute: 10_000 });
  const ada = await h.person('Ada');
  const { sitesConfig } = h.app.doors.sitesDoors;
  const { etag, value } = await sitesConfig.read();
  const quotas = { ...value.quotas, bytesPerOwner: 1_000_000 };
  const limits = { ...value.upload, maxUploadBytes: 400_000 };
  await sitesConfig.put(systemAct, etag, { ...value, quotas, upload: limits });
  const send = (letter: string, rules: string) =>
    upload(h, ada, { 'index.html': letter.repeat(300_000), _redirects: rules }, { visibility: 'public' });

  const codes: string[] = [];
  for (const letter of 'abcdef') codes.push((await send(letter, 'not a rule')).error.code);
  const rejected = Array.from({ length: 4 }, () => 'upload_rejected');
  expect(codes).toEqual([...rejected, 'quota_exceeded', 'quota_exceeded']);
  h.clock.advance(hour);
  expect((await send('g', '/old /')).status).toBe(201);
  // What was published counts as kept and no more as waiting.
  expect((await send('h', '/old /')).status).toBe(201);
  expect((await send('i', '/old /')).status).toBe(201);
  await h.close();
});
