import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Guides, missingTools, openGuides, samplesOf } from './guides.ts';

// What the guides of Sites tell people to type, letter by letter, against the real program.
describe.skipIf(missingTools('zip').length > 0)('the samples about sites', () => {
  let guides: Guides;
  /** A key that publishes, and the lines that the pages begin with. */
  let begin: string;
  beforeAll(async () => {
    guides = await openGuides();
    const { token } = await guides.makeKey('publishes', ['sites:write']);
    begin = `BASE=${guides.origin}\nPOSTERN_KEY=${token}\nAUTH="Authorization: Bearer $POSTERN_KEY"\n`;
    mkdirSync(join(guides.folder, 'my-site/docs'), { recursive: true });
    const page = '<!doctype html><title>One</title><a href="/nowhere">nowhere</a>';
    writeFileSync(join(guides.folder, 'my-site/index.html'), page);
    writeFileSync(join(guides.folder, 'my-site/docs/more of it.txt'), 'more');
  });
  afterAll(() => guides.close());

  const sites = async () =>
    JSON.parse(await guides.bash('curl -s -b jar http://localhost:3000/api/v2/sites')) as {
      data: { id: string; name: string; url: string }[];
    };
  async function publish(
    visibility: 'public' | 'private',
  ): Promise<{ id: string; url: string; link: string }> {
    const made = await guides.bash(
      `${begin}curl -s -H "$AUTH" -F file=@my-site/index.html -F visibility=${visibility} "$BASE/api/v2/sites"`,
    );
    return (JSON.parse(made) as { data: { id: string; url: string; link: string } }).data;
  }
  const statusOf = (url: string) => guides.bash(`curl -s -o /dev/null -w '%{http_code}' '${url}'`);

  test('publish a site: from a folder, replaced, rolled back, restored, by its changes, and the receipt is the same', async () => {
    const samples = await samplesOf('how-to/publish-a-site.md');
    const send = samples.findIndex((sample) => sample.startsWith('cd my-site'));
    const printed = await guides.bash(
      [begin, ...samples.slice(0, send), 'echo two > my-site/two.txt', ...samples.slice(send)].join('\n'),
    );
    expect(printed).not.toContain('"code"');
    expect(printed).not.toContain('not sent');
    expect(printed).toMatch(/"defaultVisibility": "private"/);
    expect(printed).toMatch(/"brokenLinks": \[\s*\{\s*"page": "index.html",\s*"target": "\/nowhere"/);
    expect(printed).toMatch(/"path": "docs\/more of it.txt",\s*"change": "removed"/);
    expect(printed).toMatch(/"status": "deleted"[^]*"status": "active"/);
    expect(printed).toMatch(/"missing": \[\s*"[0-9a-f]{64}"\s*\]/);
    const [receipt, live] = printed.trimEnd().split('\n').slice(-2);
    expect(receipt).toBe(`${live}  -`);
  });

  test('check a site: what would be published with its receipt, and every problem', async () => {
    const [check = '', receipt = ''] = await samplesOf('how-to/check-a-site.md');
    const archive = join(guides.folder, 'checked.zip');
    const printed = await guides.bash(
      `(cd my-site && zip -qr ${archive} .)\n${check.replace('site.zip', archive)}\n${receipt.replace('cd site', 'cd my-site')}`,
    );
    const [, said, made] = /receipt ([0-9a-f]{64})\n([0-9a-f]{64}) {2}-/.exec(printed) ?? [];
    expect([said, printed]).toEqual([made, expect.any(String)]);
    expect(said).toBeDefined();

    const refused = join(guides.folder, 'refused.zip');
    await expect(
      guides.bash(
        `mkdir refused && echo x > refused/.env && (cd refused && zip -qr ${refused} .)\n${check.replace('site.zip', refused)}`,
      ),
    ).rejects.toThrow(/ended with 1[^]*\.env usually contains secrets[^]*would refuse this upload/);
  });

  test('private sites: a site is made private, opened by its owner, listed, and its grants are ended', async () => {
    const [makePrivate = '', why = '', end = ''] = await samplesOf('how-to/private-sites.md');
    const site = await publish('public');
    const set = (sample: string) => sample.replace('SITE=…', `SITE=${site.id}`);
    const changed = await guides.bash(begin + set(makePrivate));
    const { url } = JSON.parse(changed) as { url: string };
    expect([await statusOf(site.url), await statusOf(url)]).toEqual(['404', '303']);

    // A browser would redeem the code that the last page holds; curl keeps no cookies of a host below localhost.
    const open = `link=$(curl -s -o /dev/null -w '%{redirect_url}' '${url}')\ncurl -s -b jar -o page.html "$link"\n`;
    const redeem = `curl -s -o /dev/null -w '%{http_code}\\n' -H "Origin: $BASE" -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate' \
  -H 'Sec-Fetch-Dest: document' --data-urlencode "code=$(sed -n 's/.*name="code" value="\\([^"]*\\).*/\\1/p' page.html)" \
  "$(sed -n 's/.*action="\\([^"]*\\)".*/\\1/p' page.html)"\n`;
    const printed = await guides.bash(`${begin}SITE=${site.id}\n${open}${redeem}${why}${end}${end}`);
    expect(printed).toMatch(/"opens": true,\s*"checks": \[\]/);
    expect(printed.match(/"status": ".*"/g)).toEqual(['"status": "live"', '"status": "ended"']);
  });

  test('set limits for Sites: changed, gone back, and switched off and on', async () => {
    const [change = '', back = '', off = ''] = await samplesOf('how-to/set-limits-for-sites.md');
    const config = async () =>
      (
        JSON.parse(await guides.bash('curl -s -b jar http://localhost:3000/api/v2/config/sites')) as {
          data: { config: { enabled: boolean; quotas: unknown } };
        }
      ).data.config;
    const before = await config();
    const { url } = await publish('public');
    expect(await guides.bash(change)).toMatch(/"sitesOffline": 0[^]*\n1\n$/);
    expect((await config()).quotas).toEqual({ sitesPerOwner: 20, bytesPerOwner: 1024 ** 3 });
    expect(await guides.bash(begin + back)).toMatch(/"version": 0,[^]*\n2\n$/);
    expect(await config()).toEqual(before);
    expect(await guides.bash(begin + off)).toBe('3\n');
    await expect.poll(() => statusOf(url)).toBe('404');
    await guides.bash(begin + off.replace('.enabled = false', '.enabled = true'));
    await expect.poll(() => statusOf(url)).toBe('200');
  });

  test('take a site down: a site is found by its host, taken down, checked, and reinstated', async () => {
    const [find = '', stop = '', look = '', back = ''] = await samplesOf('how-to/take-a-site-down.md');
    const { id, url } = await publish('public');
    const host = new URL(url).hostname.split('.')[0] ?? '';
    expect(await guides.bash(find.replace('fdlzohccrwicpm35q', host))).toMatch(
      new RegExp(`^${id} .* of ada \\(user usr_`),
    );
    const begun = `BASE=${guides.origin}\n`;
    expect(await guides.bash(begun + stop.replace('SITE=…', `SITE=${id}`))).toContain('"takenDownAt": "2');
    await expect.poll(() => statusOf(url)).toBe('404');
    expect(await guides.bash(`${begun}SITE=${id}\n${look}`)).toContain('"event": "site.taken_down"');
    expect(await guides.bash(`${begun}SITE=${id}\n${back}`)).toContain('"takenDownAt": null');
    await expect.poll(() => statusOf(url)).toBe('200');
    expect((await sites()).data.map((site) => site.id)).toContain(id);
  });
});
