import { expect, test } from 'vitest';
import { requestOf } from './request.ts';
import type { Verb } from '../core/verb.ts';

const verb: Verb = {
  name: 'repos change',
  summary: 'Change a repository',
  method: 'PATCH',
  path: '/repositories/{owner}/{name}',
  callers: 'keys',
  arguments: [{ name: 'owner/name', meaning: '' }],
  options: [
    { name: 'notify', in: 'query', type: 'flag', meaning: '' },
    { name: 'fullName', in: 'body', type: 'text', isRequired: true, meaning: '' },
    { name: 'cloneUrl', in: 'body', type: 'text', meaning: '' },
  ],
  ifMatch: 'optional',
  body: 'required',
};
const file: Verb = {
  ...verb,
  path: '/sites/{id}/files/{path}',
  arguments: [
    { name: 'id', meaning: '' },
    { name: 'path', meaning: '' },
  ],
  options: [{ name: 'spa', in: 'either', type: 'flag', meaning: '' }],
  body: 'optional',
  file: 'optional',
};

test('options become the query and the body; those of the input are replaced', () => {
  const request = requestOf(verb, {
    arguments: ['acme/website'],
    options: { notify: false, fullName: 'acme/site' },
    input: { fullName: 'acme/other', cloneUrl: 'https://git.example.com/a.git' },
    ifMatch: '"v3"',
  });
  expect(request).toEqual({
    method: 'PATCH',
    path: '/repositories/acme/website?notify=false',
    ifMatch: '"v3"',
    body: { kind: 'json', value: { fullName: 'acme/site', cloneUrl: 'https://git.example.com/a.git' } },
  });
});

test('beside a file, the options are in the query', () => {
  const given = { arguments: ['k3v9', 'a b/ü.html'], options: { spa: true } };
  expect(requestOf(file, { ...given, file: 'site.zip' })).toEqual({
    method: 'PATCH',
    path: '/sites/k3v9/files/a%20b/%C3%BC.html?spa=true',
    body: { kind: 'file', path: 'site.zip' },
  });
  expect(requestOf(file, given).body).toEqual({ kind: 'json', value: { spa: true } });
  expect(requestOf(file, { ...given, options: {} }).body).toEqual({ kind: 'json', value: {} });
});

test.each([
  ['a required option is missing', { options: { cloneUrl: 'x' } }, '--full-name is missing.'],
  [
    'nothing is given',
    { arguments: ['acme'], options: { fullName: 'x' } },
    'OWNER/NAME must look like acme/website.',
  ],
  ['a segment is a dot', { arguments: ['../x'], options: { fullName: 'x' } }, 'cannot be empty, "." or ".."'],
  ['the input is no object', { options: { fullName: 'x' }, input: [] }, 'an --input that is a JSON object'],
])('wrong usage: %s', (_, given, message) => {
  expect(() => requestOf(verb, { arguments: ['acme/website'], ...given })).toThrow(message);
});
