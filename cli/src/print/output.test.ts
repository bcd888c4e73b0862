import { expect, test } from 'vitest';
import { Failure } from '../core/failure.ts';
import { failureText, hintsOf, isColored, resultText } from './output.ts';

const piped = { isJson: false, fields: undefined, columns: null, isColored: false, now: 0 };
const rows = [
  { id: 'a', name: 'One\ttab\u001b[31m', owner: { id: 'usr' }, size: 1 },
  { id: 'bcd', name: null, owner: { id: 'svc' }, size: 20 },
];

test('piped, a list has tabs and no header, and no value can add a column or a line', () => {
  const text = resultText({ data: rows, columns: ['id', 'name', 'size'] }, piped);
  expect(text).toBe('a\tOne\\ttab\\u001b[31m\t1\nbcd\t\t20\n');
});

test('on a terminal, a list is a table that fits', () => {
  const text = resultText({ data: rows, columns: ['id', 'size', 'name'] }, { ...piped, columns: 16 });
  expect(text).toBe('ID   SIZE  NAME\na    1     One\\…\nbcd  20\n');
});

test('colours are for terminals that show them, and NO_COLOR switches them off', () => {
  expect(isColored(true, { TERM: 'xterm' })).toBe(true);
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) expect(isColored(true, env)).toBe(false);
  expect(isColored(false, {})).toBe(false);
  const text = resultText(
    { data: rows, columns: ['id', 'size'] },
    { ...piped, columns: 16, isColored: true },
  );
  expect(text).toBe('\u001b[1mID   SIZE\u001b[22m\na    1\nbcd  20\n');
});

test('--fields names the fields and their order, also inside others', () => {
  const fields = ['owner.id', 'id'];
  expect(resultText({ data: rows }, { ...piped, fields })).toBe('usr\ta\nsvc\tbcd\n');
  expect(resultText({ data: rows[0] }, { ...piped, fields })).toBe('usr\ta\n');
  expect(JSON.parse(resultText({ data: rows[0] }, { ...piped, fields, isJson: true }))).toEqual({
    ok: true,
    data: { 'owner.id': 'usr', id: 'a' },
    error: null,
  });
});

test('one thing has a line for each field', () => {
  expect(resultText({ data: rows[1] }, piped)).toBe('id\tbcd\nname\t\nowner\t{"id":"svc"}\nsize\t20\n');
});

test('a failure says what to do, and its JSON has every part', () => {
  const failure = new Failure('site_not_found', 3, 'There is no such site.', {
    hint: 'List your sites.',
    requestId: 'req_1',
  });
  expect(failureText(failure, false)).toBe(
    'postern: There is no such site. (site_not_found)\n  List your sites.\n  Request: req_1\n',
  );
  expect(JSON.parse(failureText(failure, true))).toEqual({
    ok: false,
    data: null,
    error: {
      code: 'site_not_found',
      message: 'There is no such site.',
      hint: 'List your sites.',
      requestId: 'req_1',
    },
  });
});

test('a hint says that there are more pages', () => {
  expect(hintsOf({ data: [], pagination: { current: 1, total: 2 }, etag: '"v1"' })).toBe(
    'There are more: --paginate prints every page.\n',
  );
  expect(hintsOf({ data: [], pagination: { current: 2, total: 2 } })).toBe('');
});
