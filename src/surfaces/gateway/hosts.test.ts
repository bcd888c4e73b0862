import { expect, test } from 'vitest';
import { hostReader } from './hosts.ts';

const site = 'abcdefghijklmnopq';
const hidden = 'p-abcdefghijklmnopq';
const environment = 'web-eabcdefghijklmnopq';
const oneHost = {
  contentUrl: 'https://sites.example.net',
  environmentsContentUrl: 'https://sites.example.net',
};
const twoHosts = { ...oneHost, environmentsContentUrl: 'https://branches.example.org:8443' };
const nested = { ...oneHost, environmentsContentUrl: 'https://branches.sites.example.net' };

test.each([
  ['one host', oneHost, `${site}.sites.example.net`, 'site'],
  ['one host', oneHost, `${environment}.sites.example.net`, 'environment'],
  ['one host', oneHost, 'sites.example.net', 'nobody'],
  ['one host', oneHost, 'x.sites.example.net', 'nobody'],
  ['one host', oneHost, `${environment}.branches.example.org`, 'foreign'],
  ['two hosts', twoHosts, `${site}.sites.example.net`, 'site'],
  ['two hosts', twoHosts, `${hidden}.sites.example.net`, 'site'],
  ['two hosts', twoHosts, `${environment}.sites.example.net`, 'nobody'],
  ['two hosts', twoHosts, `${environment}.branches.example.org:8443`, 'environment'],
  ['two hosts', twoHosts, `${environment.toUpperCase()}.Branches.example.org:8443`, 'environment'],
  ['two hosts', twoHosts, `${site}.branches.example.org:8443`, 'nobody'],
  ['two hosts', twoHosts, `${hidden}.branches.example.org:8443`, 'nobody'],
  ['two hosts', twoHosts, 'branches.example.org:8443', 'nobody'],
  ['two hosts', twoHosts, `${environment}.branches.example.org`, 'foreign'],
  ['two hosts', twoHosts, `a.${environment}.branches.example.org:8443`, 'foreign'],
  ['two hosts', twoHosts, '.branches.example.org:8443', 'foreign'],
  ['one host below the other', nested, `${environment}.branches.sites.example.net`, 'environment'],
  ['one host below the other', nested, `${site}.branches.sites.example.net`, 'nobody'],
  ['one host below the other', nested, `${environment}.sites.example.net`, 'nobody'],
  ['one host below the other', nested, 'branches.sites.example.net', 'nobody'],
])('T35 with %s (%o), %s is %s', (_what, urls, host, kind) => {
  expect(hostReader(urls)([host]).kind).toBe(kind);
});
