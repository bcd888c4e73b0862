import type { Section } from '../documents/fields.ts';

/** The Sites configuration in the words of its page. fields.test.ts holds paths and defaults to the server's. */
const mib = 1024 * 1024;
const extensions =
  'html htm xhtml css js mjs map json jsonld xml txt md csv pdf webmanifest wasm svg png jpg jpeg gif webp avif ico bmp woff woff2 ttf otf eot mp3 mp4 m4a ogg oga ogv wav webm vtt gz br zip'.split(
    ' ',
  );
const days = { kind: 'number', unit: 'days', min: 1, max: 3_650 } as const;

export const sitesSections: readonly Section[] = [
  {
    title: 'Availability',
    says: 'The switch for all of Sites. When off, there are no uploads, no listings and no content, not even of public sites; every address answers 404. Nothing is deleted, and nothing becomes public or private, but sites still expire.',
    fields: [
      {
        path: 'enabled',
        label: 'Sites is on',
        says: 'Enabling Sites restores everything; browsers need new grants for private sites.',
        kind: 'switch',
        on: 'on',
        off: 'off',
        standard: true,
      },
    ],
  },
  {
    title: 'Visibility',
    says: 'Who may see new sites. Existing sites do not change.',
    fields: [
      {
        path: 'visibility.allowPublic',
        label: 'Public sites',
        says: 'Open to everyone who has the address.',
        kind: 'switch',
        on: 'allowed',
        off: 'not allowed',
        standard: true,
      },
      {
        path: 'visibility.allowPrivate',
        label: 'Private sites',
        says: 'Open only in their owner’s browser.',
        kind: 'switch',
        on: 'allowed',
        off: 'not allowed',
        standard: true,
      },
    ],
  },
  {
    title: 'Expiry',
    says: 'How long a site lives unless it is extended.',
    fields: [
      {
        path: 'ttl.enabled',
        label: 'Sites expire',
        says: 'When off, sites stay until they are deleted.',
        kind: 'switch',
        on: 'yes',
        off: 'no',
        standard: true,
      },
      {
        path: 'ttl.defaultDays',
        label: 'Lifetime',
        says: 'For a new site whose request sets none.',
        standard: 30,
        ...days,
      },
      {
        path: 'ttl.extensionDays',
        label: 'Extension',
        says: 'How much one extension adds.',
        standard: 30,
        ...days,
      },
      {
        path: 'ttl.maxDays',
        label: 'Latest expiry',
        says: 'How far ahead a site may expire.',
        standard: 365,
        ...days,
      },
    ],
  },
  {
    title: 'Uploads',
    says: 'Limits for one version. A tighter limit applies to the next upload and removes nothing.',
    fields: [
      {
        path: 'upload.maxUploadBytes',
        label: 'Upload size',
        says: 'Of the ZIP or tar.gz.',
        kind: 'bytes',
        max: 4_096 * mib,
        standard: 100 * mib,
      },
      {
        path: 'upload.maxExtractedBytes',
        label: 'Unpacked size',
        says: 'Of all files of a version.',
        kind: 'bytes',
        max: 16_384 * mib,
        standard: 250 * mib,
      },
      {
        path: 'upload.maxFileBytes',
        label: 'Size of one file',
        says: 'Unpacked.',
        kind: 'bytes',
        max: 4_096 * mib,
        standard: 50 * mib,
      },
      {
        path: 'upload.maxFiles',
        label: 'Files and folders',
        says: 'Of a version.',
        kind: 'number',
        unit: 'files',
        min: 1,
        max: 100_000,
        standard: 10_000,
      },
      {
        path: 'upload.allowedExtensions',
        label: 'File types',
        says: 'File name extensions, without the dot. Names without an extension are always allowed.',
        kind: 'words',
        standard: extensions,
      },
    ],
  },
  {
    title: 'Quotas',
    says: 'For each person, and for each service key.',
    fields: [
      {
        path: 'quotas.sitesPerOwner',
        label: 'Sites',
        says: 'Deleted ones do not count.',
        kind: 'number',
        unit: 'sites',
        min: 1,
        max: 1_000_000,
        standard: 100,
      },
      {
        path: 'quotas.bytesPerOwner',
        label: 'Storage',
        says: 'Counts each distinct content once, across all kept versions.',
        kind: 'bytes',
        max: Number.MAX_SAFE_INTEGER,
        standard: 2_048 * mib,
      },
    ],
  },
  {
    title: 'Versions and clean-up',
    says: 'What is kept, and for how long. If you keep fewer versions, the next clean-up removes the older ones.',
    fields: [
      {
        path: 'versions.retain',
        label: 'Versions kept',
        says: 'Of each site.',
        kind: 'number',
        unit: 'versions',
        min: 1,
        max: 1_000,
        standard: 10,
      },
      {
        path: 'versions.skewGraceMinutes',
        label: 'Files of a replaced version',
        says: 'How long files with a hash in their name stay available to pages that are already open.',
        kind: 'number',
        unit: 'minutes',
        min: 0,
        max: 43_200,
        standard: 60,
      },
      {
        path: 'deletion.restoreDays',
        label: 'Restoring',
        says: 'How long a deleted or expired site can be restored.',
        kind: 'number',
        unit: 'days',
        min: 0,
        max: 365,
        standard: 7,
      },
      {
        path: 'cleanup.intervalMinutes',
        label: 'Clean-up',
        says: 'How often expired data is removed.',
        kind: 'number',
        unit: 'minutes',
        min: 1,
        max: 1_440,
        standard: 15,
      },
    ],
  },
];
