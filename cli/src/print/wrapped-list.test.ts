import { expect, test } from 'vitest';
import { resultText } from './output.ts';
import { wrappedList } from './wrapped-list.ts';

const links = [
  { label: 'Code', url: 'https://a.example.com', icon: null },
  { label: 'Logs', url: 'https://b.example.com', icon: 'log', only: { repository: 'x' } },
];

test('piped, a list that is wrapped in an object has a line for each item', () => {
  const { rows, columns = [] } = wrappedList({ links }) ?? {};
  const piped = { isJson: false, fields: undefined, columns: null, isColored: false, now: 0 };
  expect(resultText({ data: { links }, shown: rows, columns }, piped)).toBe(
    'Code\thttps://a.example.com\t\nLogs\thttps://b.example.com\tlog\n',
  );
  expect(
    JSON.parse(resultText({ data: { links }, shown: rows, columns }, { ...piped, isJson: true })).data,
  ).toEqual({
    links,
  });
});

test('one thing with a list among its fields stays one thing', () => {
  expect(wrappedList({ definitions: links, defaultInstructions: 'Be brief.' })?.rows).toEqual(links);
  for (const data of [
    { id: 'u1', missing: [] },
    { a: links, b: [] },
    { missing: ['x'] },
    { valid: true, problems: [], sha: 'x' },
    links,
    null,
  ])
    expect(wrappedList(data)).toBeUndefined();
});
