/**
 * Media types by extension only: neither the client's claim nor the bytes decide (threat T44). A file with any other
 * extension is a download.
 */
const text = (type: string) => `${type}; charset=utf-8`;

const types: Readonly<Record<string, string>> = {
  html: text('text/html'),
  htm: text('text/html'),
  xhtml: text('application/xhtml+xml'),
  css: text('text/css'),
  js: text('text/javascript'),
  mjs: text('text/javascript'),
  json: text('application/json'),
  map: text('application/json'),
  jsonld: text('application/ld+json'),
  webmanifest: text('application/manifest+json'),
  xml: text('application/xml'),
  txt: text('text/plain'),
  md: text('text/markdown'),
  csv: text('text/csv'),
  vtt: text('text/vtt'),
  svg: text('image/svg+xml'),
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

export type MediaType = { readonly type: string; readonly isDownload: boolean };

export function mediaTypeOf(path: string): MediaType {
  const extension = /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase();
  const type = extension === undefined || !Object.hasOwn(types, extension) ? undefined : types[extension];
  return type === undefined
    ? { type: 'application/octet-stream', isDownload: true }
    : { type, isDownload: false };
}
