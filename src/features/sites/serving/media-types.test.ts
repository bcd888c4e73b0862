import { expect, test } from 'vitest';
import { mediaTypeOf } from './media-types.ts';

/** The whole table as a browser is to hear it; every other name is a download. */
const table: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  htm: 'text/html; charset=utf-8',
  xhtml: 'application/xhtml+xml; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  json: 'application/json; charset=utf-8',
  map: 'application/json; charset=utf-8',
  jsonld: 'application/ld+json; charset=utf-8',
  webmanifest: 'application/manifest+json; charset=utf-8',
  xml: 'application/xml; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  md: 'text/markdown; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
  svg: 'image/svg+xml; charset=utf-8',
  pdf: 'application/pdf',
  wasm: 'application/wasm',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  ico: 'image/x-icon',
  bmp: 'image/bmp',
  woff: 'font/woff',
  woff2: 'font/woff2',
  ttf: 'font/ttf',
  otf: 'font/otf',
  eot: 'application/vnd.ms-fontobject',
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  oga: 'audio/ogg',
  ogg: 'audio/ogg',
  wav: 'audio/wav',
  mp4: 'video/mp4',
  ogv: 'video/ogg',
  webm: 'video/webm',
};

test.each(Object.entries(table))(
  'UP-07 T44 .%s is %s, in any folder and case of letters',
  (extension, type) => {
    for (const path of [
      `a.${extension}`,
      `a/b.${extension.toUpperCase()}`,
      `a.html.${extension}`,
      `a.exe/b.${extension}`,
      `.a.${extension}`,
    ])
      expect([path, mediaTypeOf(path)]).toEqual([path, { type, isDownload: false }]);
  },
);

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
