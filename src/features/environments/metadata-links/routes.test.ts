import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Harness, openHarness, type Person } from '../../../../test/harness.ts';

let h: Harness;
let root: Person;
beforeAll(async () => {
  h = await openHarness();
  root = await h.person('Root', { admin: true });
});
afterAll(() => h.close());

const link = { text: 'Source', icon: 'branch', link: 'https://git.example.com/${environment.branch}' };
type Link = typeof link & { id: string; position: number };
const list = async (): Promise<Link[]> => (await h.call('GET', '/config/metadata', { as: root })).data.links;
const add = (body: object) => h.call('POST', '/config/metadata', { as: root, body });
const change = (id: string, body: object) => h.call('PATCH', `/config/metadata/${id}`, { as: root, body });
const remove = (id: string) => h.call('DELETE', `/config/metadata/${id}`, { as: root });
const textsOf = (links: readonly Link[]) => links.map(({ text, position }) => `${position} ${text}`);

beforeEach(async () => {
  for (const { id } of await list()) await remove(id);
});

test('links are added at the end or at a place, changed, moved and deleted; the answer is all of them', async () => {
  const first = await add({ ...link, text: 'a' });
  expect([first.status, first.data]).toEqual([
    201,
    { links: [{ ...link, text: 'a', id: expect.stringMatching(/^mdl_/), position: 1 }] },
  ]);
  await add({ ...link, text: 'c' });
  expect(textsOf((await add({ ...link, text: 'b', position: 2 })).data.links)).toEqual(['1 a', '2 b', '3 c']);
  const [a, b] = await list();
  const moved = await change(a?.id ?? '', { position: 50 });
  expect([moved.status, textsOf(moved.data.links)]).toEqual([200, ['1 b', '2 c', '3 a']]);
  const renamed = await change(b?.id ?? '', { text: 'B', icon: 'bug' });
  expect(renamed.data.links[0]).toEqual({ ...link, id: b?.id, text: 'B', icon: 'bug', position: 1 });
  const gone = await remove(b?.id ?? '');
  expect([gone.status, gone.text]).toEqual([204, '']);
  expect(textsOf(await list())).toEqual(['1 c', '2 a']);
  expect((await h.call('GET', '/config/metadata', { as: root })).headers).not.toHaveProperty('etag');
  for (const again of [await remove(b?.id ?? ''), await change(b?.id ?? '', { text: 'x' })])
    expect([again.status, again.error.code]).toEqual([404, 'not_found']);
});

test('every change leaves one event with what was there before and after', async () => {
  const { data } = await add(link);
  const { id } = data.links[0];
  await change(id, { text: 'Code' });
  await remove(id);
  const events = await h.call('GET', '/audit/events', {
    as: root,
    query: { event: 'config.metadata.changed', limit: '3' },
  });
  expect(
    events.data.map(({ reason, details }: { reason: string; details: object }) => [reason, details]),
  ).toEqual([
    ['link_removed', { before: { id, ...link, text: 'Code', position: 1 } }],
    [
      'link_changed',
      { before: { id, ...link, position: 1 }, after: { id, ...link, text: 'Code', position: 1 } },
    ],
    ['link_added', { after: { id, ...link, position: 1 } }],
  ]);
});

test('two links that are added at once are both there, at places of their own', async () => {
  await Promise.all([add({ ...link, text: 'a' }), add({ ...link, text: 'a' })]);
  expect(textsOf(await list())).toEqual(['1 a', '2 a']);
});

test('what is wrong is refused by its field, and nothing changes', async () => {
  for (const [wrong, field] of [
    [{ link: 'https://example.com/${environment.brnch}' }, 'link'],
    [{ link: 'javascript:alert(1)' }, 'link'],
    [{ link: `https://example.com/${'x'.repeat(2_000)}` }, 'link'],
    [{ icon: 'skull' }, 'icon'],
    [{ text: '' }, 'text'],
    [{ position: 0 }, 'position'],
  ] as const) {
    const { status, error } = await add({ ...link, ...wrong });
    expect([status, error.code, error.details.fields[0].field]).toEqual([422, 'config_invalid', field]);
  }
  expect(await list()).toEqual([]);
});

test('there are at most 50 links', async () => {
  for (let count = 0; count < 50; count += 1) await add(link);
  const { status, error } = await add(link);
  expect([status, error.code]).toEqual([422, 'quota_exceeded']);
});
