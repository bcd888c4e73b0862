import { defaultSitesConfig } from '../site/sites-config.ts';

/** Examples of the reference. */
const digest = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';

export const exampleSite = {
  id: 'k3v9x0q2m7',
  name: 'Handbook',
  url: 'https://p-bq4zr7mtx2dwkc5ey.sites.example.com/',
  link: 'https://postern.example.com/s/k3v9x0q2m7',
  visibility: 'private' as const,
  status: 'active' as const,
  spa: false,
  restorableUntil: null,
  takeDownReason: null,
  owner: { kind: 'user' as const, id: 'usr_8fQ2mV6sT0aXk4RjB1Zc', name: 'Ada' },
  createdAt: '2026-01-01T09:00:00.000Z',
  updatedAt: '2026-01-01T09:00:00.000Z',
  expiresAt: '2026-01-31T09:00:00.000Z',
  fileCount: 42,
  sizeBytes: 1_048_576,
  version: { id: 'ver_k3v9x0q2m7_3', number: 3, digest, publishedAt: '2026-01-01T09:00:00.000Z' },
};

export const examplePublished = { ...exampleSite, warnings: [], leftOut: [{ rule: '.DS_Store', count: 1 }] };

export const exampleVersion = {
  ...exampleSite.version,
  isLive: true,
  createdAt: '2026-01-01T09:00:00.000Z',
  createdBy: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
  replacedAt: null,
  fileCount: 42,
  sizeBytes: 1_048_576,
};

export const exampleReport = {
  ...exampleVersion,
  receipt: digest,
  report: {
    against: 2,
    added: { count: 1, names: ['guide/install.html'] },
    changed: { count: 1, names: ['index.html'] },
    removed: { count: 0, names: [] },
    sizeChange: 2_048,
    brokenLinks: [{ page: 'index.html', target: 'guide/instal.html' }],
    absolutePaths: [],
    mixedContent: [],
    warnings: [],
    leftOut: [{ rule: '.DS_Store', count: 1 }],
    isComplete: true,
  },
};

export const exampleFile = { path: 'index.html', size: 1_024, sha256: digest };

export const exampleUploadStart = {
  files: { 'index.html': { sha256: digest, size: 1_024 } },
  spa: false,
};

export const exampleUpload = {
  id: 'upl_4fK8mV6sT0aXk4RjB1Zc',
  missing: [digest],
  leftOut: [],
  expiresAt: '2026-01-02T09:00:00.000Z',
};

export const exampleConfigVersion = {
  version: 1,
  changedAt: '2026-01-01T09:00:00.000Z',
  changedBy: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
  config: defaultSitesConfig,
};

export const exampleCapabilities = {
  enabled: true,
  upload: defaultSitesConfig.upload,
  allowedVisibility: ['private' as const, 'public' as const],
  visibilityReasons: {},
  defaultVisibility: 'private' as const,
  ttl: { enabled: true, defaultHours: 720, extensionHours: 720, maxHours: 8_760 },
  quotas: { ...defaultSitesConfig.quotas, sitesUsed: 1, bytesUsed: 1_048_576 },
  serverTime: '2026-01-01T09:00:00.000Z',
};

export const exampleActions = {
  reasons: {
    publish: null,
    change: null,
    change_visibility: 'An administrator does not allow new public sites.',
    extend: null,
    delete: null,
    restore: 'The site is not deleted.',
    see_versions: null,
    end_grants: null,
  },
  extendsTo: '2026-03-02T09:00:00.000Z',
  latestExpiry: '2027-01-01T09:00:00.000Z',
  restoreDays: 7,
};

export const exampleChanges = {
  against: 3,
  added: 0,
  changed: 1,
  removed: 1,
  files: [
    { path: 'assets/app.js', change: 'changed' as const, size: 2_048, sizeBefore: 1_024 },
    { path: 'old.html', change: 'removed' as const, size: null, sizeBefore: 512 },
  ],
};
