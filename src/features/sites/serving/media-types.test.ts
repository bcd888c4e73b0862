import database from 'mime-db/db.json' with { type: 'json' };
import { expect, test } from 'vitest';
import { mediaTypeOf } from './media-types.ts';

/** The registry of IANA, with what Apache and nginx add to it: each media type with its extensions. */
type MediaTypeEntry = {
  readonly source?: string;
  readonly compressible?: boolean;
  readonly extensions?: readonly string[];
};
const registry: Readonly<Record<string, MediaTypeEntry>> = database;
const typesOf = Map.groupBy(
  Object.entries(registry).flatMap(([type, { extensions = [] }]) =>
    extensions.map((extension) => ({ type, extension })),
  ),
  ({ extension }) => extension,
);

/** Where several are registered, the one that browsers expect (RFC 9239 for scripts). */
const chosen: Readonly<Record<string, string>> = {
  js: 'text/javascript',
  xml: 'application/xml',
  ico: 'image/x-icon',
  bmp: 'image/bmp',
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  wav: 'audio/wav',
  mp4: 'video/mp4',
};

/** What a browser shows, runs or plays. */
const shown =
  'html htm xhtml css js mjs json map jsonld webmanifest xml txt md csv vtt svg pdf wasm png jpg jpeg gif webp avif ico bmp ' +
  'woff woff2 ttf otf eot mp3 m4a oga ogg wav mp4 ogv webm';

test.each(shown.split(' '))(
  'UP-07 T44 .%s is of its registered type, as UTF-8 where it is text, in any folder and case of letters',
  (extension) => {
    const { type, isDownload } = mediaTypeOf(`a.${extension}`);
    const [essence = '', ...parameters] = type.split('; ');
    expect(isDownload).toBe(false);
    const registered = (typesOf.get(extension) ?? []).map((one) => one.type);
    expect(registered).toContain(essence);
    expect(essence).toBe(registered.length > 1 ? chosen[extension] : registered[0]);
    const isText = /^text\/|[/+](?:json|xml)$/.test(essence);
    expect(parameters).toEqual(isText ? ['charset=utf-8'] : []);
    for (const path of [
      `a/b.${extension.toUpperCase()}`,
      `a.html.${extension}`,
      `a.exe/b.${extension}`,
      `.a.${extension}`,
    ])
      expect([path, mediaTypeOf(path)]).toEqual([path, { type, isDownload }]);
  },
);

test('UP-07 T44 every other registered extension is a download', () => {
  const others = [...typesOf.keys()].filter((extension) => !shown.split(' ').includes(extension));
  expect(others.length).toBeGreaterThan(1_000);
  expect(others.filter((extension) => !mediaTypeOf(`a.${extension}`).isDownload)).toEqual([]);
});

test.each([
  'LICENSE',
  'html',
  '.html',
  'a/.html',
  'a.html/b',
  'a.',
  'a.html.',
  'a.html ',
  'a.ht ml',
  'a.html;x.exe',
  'a.shtml',
  'a.xht',
  'a.hta',
  'a.mht',
  'a.mhtml',
  'a.svgz',
  'a.xsl',
  'a.xslt',
  'a.swf',
  'a.jar',
  'a.exe',
  'a.php',
  'a.zip',
  'a.htm1',
  'a.ｈtml',
  'a.toString',
  'a.hasOwnProperty',
  'a.constructor',
  '',
])('UP-07 T44 %j is a download, whatever is in it', (path) => {
  expect(mediaTypeOf(path)).toEqual({ type: 'application/octet-stream', isDownload: true });
});
