import type { Section } from '../documents/fields.ts';

/** The Sites configuration in the words of its page. test/admin-fields.test.ts holds paths and defaults to the server's. */
const mib = 1024 * 1024;
const extensions =
  'html htm xhtml css js mjs map json jsonld xml txt md csv pdf webmanifest wasm svg png jpg jpeg gif webp avif ico bmp woff woff2 ttf otf eot mp3 mp4 m4a ogg oga ogv wav webm vtt gz br zip'.split(
    ' ',
  );
const days = { kind: 'number', unit: 'days', min: 1, max: 3_650 } as const;

export const sitesSections: readonly Section[] = [
  {
    title: 'Availability',
    says: 'The switch for all of Sites. Off: no upload, no listing and no content, public sites too; every address answers 404. Nothing is deleted and nothing becomes public or private, but time goes on: sites expire meanwhile.',
    fields: [
      {
        path: 'enabled',
        label: 'Sites is on',
        says: 'On again brings back exactly what was; browsers have to be let into private sites anew.',
        kind: 'switch',
        on: 'on',
        off: 'off',
        standard: true,
      },
    ],
  },
  {
    title: 'Visibility',
    says: 'Who may see new sites. Sites that exist stay as they are.',
    fields: [
      {
        path: 'visibility.allowPublic',
        label: 'Public sites',
        says: 'Open for everybody who has the address.',
        kind: 'switch',
        on: 'allowed',
        off: 'not allowed',
        standard: true,
      },
      {
        path: 'visibility.allowPrivate',
        label: 'Private sites',
        says: 'Open for the browser of their owner alone.',
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
        says: 'Off: they stay until they are deleted.',
        kind: 'switch',
        on: 'yes',
        off: 'no',
        standard: true,
      },
      {
        path: 'ttl.defaultDays',
        label: 'Lifetime',
        says: 'Of a new site that asks for none.',
        standard: 30,
        ...days,
      },
      {
        path: 'ttl.extensionDays',
        label: 'Extension',
        says: 'What extending once adds.',
        standard: 30,
        ...days,
      },
      {
        path: 'ttl.maxDays',
        label: 'Furthest end',
        says: 'How far ahead an end may lie.',
        standard: 365,
        ...days,
      },
    ],
  },
  {
    title: 'Uploads',
    says: 'What one version may be. A tighter limit refuses the next upload and removes nothing.',
    fields: [
      {
        path: 'upload.maxUploadBytes',
        label: 'Size as it is sent',
        says: 'Of the ZIP or tar.gz.',
        kind: 'bytes',
        max: 4_096 * mib,
        standard: 100 * mib,
      },
      {
        path: 'upload.maxExtractedBytes',
        label: 'Size unpacked',
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
        label: 'Kinds of files',
        says: 'By the end of their names, without the dot. Names without one are always allowed.',
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
        says: 'Every content once, over all kept versions.',
        kind: 'bytes',
        max: Number.MAX_SAFE_INTEGER,
        standard: 2_048 * mib,
      },
    ],
  },
  {
    title: 'Versions and clean-up',
    says: 'What is kept, and when what is over goes. Fewer versions remove older ones with the next clean-up.',
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
        says: 'How long those with a hash in their name stay for pages that are open.',
        kind: 'number',
        unit: 'minutes',
        min: 0,
        max: 43_200,
        standard: 60,
      },
      {
        path: 'deletion.restoreDays',
        label: 'Restoring',
        says: 'How long a deleted or expired site can be brought back.',
        kind: 'number',
        unit: 'days',
        min: 0,
        max: 365,
        standard: 7,
      },
      {
        path: 'cleanup.intervalMinutes',
        label: 'Clean-up',
        says: 'How often what is over is removed.',
        kind: 'number',
        unit: 'minutes',
        min: 1,
        max: 1_440,
        standard: 15,
      },
    ],
  },
];
