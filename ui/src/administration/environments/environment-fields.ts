import { bounds } from '../documents/bounds.ts';
import { sectionsOf } from '../documents/fields.ts';

/** Labels of the Environment policy. */
export const environmentSections = sectionsOf(bounds.EnvironmentPolicy, [
  {
    title: 'Availability',
    says: 'The switch for all Environments. When off, none can be created and none is served. Nothing is deleted.',
    fields: [
      {
        path: 'enabled',
        label: 'Environments are on',
        says: 'Without an engine, Postern starts no Environments even if this is on.',
      },
    ],
  },
  {
    title: 'Access',
    says: 'Who may be allowed to open an Environment. Existing Environments do not change.',
    fields: [
      {
        path: 'allowedAccess',
        label: 'Allowed access',
        says: 'owner: its creator. members: everyone who can sign in. public: everyone who has the address.',
      },
      {
        path: 'grantMinutes',
        label: 'Browser access',
        says: 'How long a browser may open an Environment that is not public before the person is checked again.',
        unit: 'minutes',
      },
    ],
  },
  {
    title: 'Lifetime',
    says: 'How long an Environment lives. A lower maximum does not shorten existing leases.',
    fields: [
      {
        path: 'defaultTtlHours',
        label: 'Lease',
        says: 'Used when neither the request nor postern.yaml sets one.',
        unit: 'hours',
      },
      {
        path: 'maxTtlHours',
        label: 'Longest lease',
        says: 'The most time from now to the end of a lease.',
        unit: 'hours',
      },
      { path: 'extensionHours', label: 'Extension', says: 'How much one extension adds.', unit: 'hours' },
      {
        path: 'sleepAfterMinutes',
        label: 'Sleep',
        says: 'A service without requests for this long is stopped until the next one. 0 keeps services on.',
        unit: 'minutes',
      },
    ],
  },
  {
    title: 'Quotas',
    says: 'How many Environments may exist, and what one service may use. A lower quota applies only to new ones.',
    fields: [
      {
        path: 'maxPerOwner',
        label: 'Environments of one owner',
        says: 'For each person, and for each service key.',
      },
      { path: 'maxTotal', label: 'Environments in total', says: 'Across all owners.' },
      { path: 'maxServices', label: 'Services', says: 'In one Environment.' },
      {
        path: 'resources.maxMilliCpu',
        label: 'Processor time',
        says: 'For one process of a service, in thousandths: 1,000 is one processor.',
        unit: 'mCPU',
      },
      { path: 'resources.maxMemoryBytes', label: 'Memory', says: 'For one process of a service.' },
    ],
  },
  {
    title: 'Builds',
    says: 'What builds may use, and how much of their output is kept.',
    fields: [
      { path: 'maxConcurrentBuilds', label: 'Builds at the same time', says: 'Across all workers.' },
      {
        path: 'buildTimeoutMinutes',
        label: 'Longest build',
        says: 'A build that takes longer is stopped.',
        unit: 'minutes',
      },
      {
        path: 'logBytes',
        label: 'Log',
        says: 'How much is kept of the log of one build, or of one service.',
      },
      {
        path: 'artifactBytesPerRepository',
        label: 'Built files',
        says: 'Kept for each repository for reuse. Above this size, unused files are removed earlier.',
      },
    ],
  },
]);
