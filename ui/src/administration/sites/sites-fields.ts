import { bounds } from '../documents/bounds.ts';
import { sectionsOf } from '../documents/fields.ts';

/** Labels of the Sites configuration. */
export const sitesSections = sectionsOf(bounds.SitesConfig, [
  {
    title: 'Availability',
    says: 'The switch for all of Sites. When off, there are no uploads, no listings and no content, not even of public sites; every address answers 404. Nothing is deleted, and nothing becomes public or private, but sites still expire.',
    fields: [
      {
        path: 'enabled',
        label: 'Sites is on',
        says: 'Enabling Sites restores everything; browsers need new grants for private sites.',
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
        on: 'allowed',
        off: 'not allowed',
      },
      {
        path: 'visibility.allowPrivate',
        label: 'Private sites',
        says: 'Open only in their owner’s browser.',
        on: 'allowed',
        off: 'not allowed',
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
        on: 'yes',
        off: 'no',
      },
      {
        path: 'ttl.defaultDays',
        label: 'Lifetime',
        says: 'Used when the request for a new site sets none.',
        unit: 'days',
      },
      { path: 'ttl.extensionDays', label: 'Extension', says: 'How much one extension adds.', unit: 'days' },
      { path: 'ttl.maxDays', label: 'Latest expiry', says: 'How far ahead a site may expire.', unit: 'days' },
    ],
  },
  {
    title: 'Uploads',
    says: 'Limits for one version. A tighter limit applies to the next upload and removes nothing.',
    fields: [
      { path: 'upload.maxUploadBytes', label: 'Upload size', says: 'Size of the ZIP or tar.gz file.' },
      {
        path: 'upload.maxExtractedBytes',
        label: 'Unpacked size',
        says: 'Total size of the files of a version.',
      },
      { path: 'upload.maxFileBytes', label: 'Size of one file', says: 'After unpacking.' },
      { path: 'upload.maxFiles', label: 'Files and folders', says: 'In one version.', unit: 'files' },
      {
        path: 'upload.allowedExtensions',
        label: 'Allowed file types',
        says: 'File name extensions, without the dot. An empty list allows any. Names without an extension are always allowed.',
        empty: 'any',
      },
      {
        path: 'upload.forbiddenExtensions',
        label: 'Forbidden file types',
        says: 'File name extensions, without the dot, that Postern refuses even if they are allowed above.',
      },
    ],
  },
  {
    title: 'Quotas',
    says: 'For each person, and for each service key.',
    fields: [
      { path: 'quotas.sitesPerOwner', label: 'Sites', says: 'Deleted ones do not count.', unit: 'sites' },
      {
        path: 'quotas.bytesPerOwner',
        label: 'Storage',
        says: 'Counts each distinct content once, across all kept versions.',
      },
    ],
  },
  {
    title: 'Versions and clean-up',
    says: 'What is kept, and for how long. If you keep fewer versions, the next clean-up removes the older ones.',
    fields: [
      { path: 'versions.retain', label: 'Versions kept', says: 'For each site.', unit: 'versions' },
      {
        path: 'versions.skewGraceMinutes',
        label: 'Files of a replaced version',
        says: 'How long files with a hash in their name stay available to pages that are already open.',
        unit: 'minutes',
      },
      {
        path: 'deletion.restoreDays',
        label: 'Restoring',
        says: 'How long a deleted or expired site can be restored.',
        unit: 'days',
      },
      {
        path: 'cleanup.intervalMinutes',
        label: 'Clean-up',
        says: 'How often expired data is removed.',
        unit: 'minutes',
      },
    ],
  },
]);
