import { systemRandom } from '../src/core/ids.ts';
import { keyFormat } from '../src/features/keys/key-value.ts';

/** A text, and what scanners find in it. */
export type KeySample = {
  readonly title: string;
  readonly text: string;
  /** The keys in it, as the server recognises them. */
  readonly keys: readonly string[];
  /** True where a regular expression, which knows no checksum, finds it all the same. */
  readonly isOnlyShaped?: true;
};

/** New keys of every kind, and what is nearly one. Values are generated, so that no file holds one. */
export function keySamples(): KeySample[] {
  const app = keyFormat('app');
  const personal = app.generate('personal', systemRandom).value;
  const service = app.generate('service', systemRandom).value;
  const other = keyFormat('acme2').generate('service', systemRandom).value;
  const upload = app.generateUploadToken(systemRandom).value;
  const exchanged = app.generateExchangedToken(systemRandom).value;
  const hex = '0af3'.repeat(10);
  const lastChanged = personal.slice(0, -1) + (personal.endsWith('A') ? 'B' : 'A');
  return [
    { title: 'a personal key', text: personal, keys: [personal] },
    { title: 'a service key', text: `key: "${service}"`, keys: [service] },
    { title: 'a key of another product word', text: `KEY=${other};`, keys: [other] },
    { title: 'the token of an upload', text: `Bearer ${upload}`, keys: [upload] },
    { title: 'an exchanged token', text: `Bearer ${exchanged}`, keys: [exchanged] },
    { title: 'an older personal key', text: `app_pat_${hex}`, keys: [`app_pat_${hex}`] },
    { title: 'an older service key', text: `(app_svc_${hex})`, keys: [`app_svc_${hex}`] },
    { title: 'a key behind another word', text: `TOKEN_${personal}`, keys: [personal] },
    { title: 'a key with letters after it', text: `${personal}xyz`, keys: [personal] },
    { title: 'two keys in a row', text: personal + service, keys: [personal, service] },
    { title: 'a key in an address', text: `https://a.example/?key=${service}&x=1`, keys: [service] },
    { title: 'a wrong checksum', text: lastChanged, keys: [], isOnlyShaped: true },
    { title: 'another type', text: personal.replace('_pat_', '_svc_'), keys: [], isOnlyShaped: true },
    { title: 'a key that is cut off', text: personal.slice(0, -1), keys: [] },
    {
      title: 'a key with a line break in it',
      text: `${personal.slice(0, 30)}\n${personal.slice(30)}`,
      keys: [],
    },
    { title: 'a key that is masked', text: `${personal.slice(0, 20)}…`, keys: [] },
    { title: 'a prefix in capitals', text: personal.toUpperCase(), keys: [] },
    { title: 'another separator', text: personal.replaceAll('_', '-'), keys: [] },
    { title: 'an older key in capitals', text: `app_pat_${hex.toUpperCase()}`, keys: [] },
    { title: 'an older key that is cut off', text: `app_svc_${hex.slice(1)}`, keys: [] },
    { title: 'an exchanged token that is cut off', text: `app_fed_${hex}`, keys: [] },
    { title: 'an id of an upload', text: `upl_${upload.slice(8, 28)}`, keys: [] },
    { title: 'a commit hash behind the name of a service', text: `web_svc_${hex}`, keys: [] },
    { title: 'a token of GitHub', text: `github_pat_${'1'.repeat(22)}_${'a'.repeat(59)}`, keys: [] },
    { title: 'the prefix alone', text: 'app_pat_', keys: [] },
  ];
}
