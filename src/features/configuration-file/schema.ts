import { z } from 'zod';

/**
 * The only definition of the fields of postern.yaml: the parser, the JSON Schema for editors and
 * docs/reference/postern-yaml.md use these schemas. rules.ts has the rules that involve several fields.
 */
export const maxServices = 20;
/** A year. */
export const maxTtlHours = 8_760;
export const accessKinds = ['owner', 'members', 'public'] as const;
/** Ordered from the fewest people to the most. */
export type Access = (typeof accessKinds)[number];

/** Maximum entries of a list or of a map such as `env`. */
export const maxEntries = 100;
/** Maximum characters of a service name. */
export const maxServiceNameLength = 40;
/** Maximum characters of a variable's value. */
export const maxValueLength = 4_000;

function listOf<T extends z.ZodType>(entry: T, meaning: string, example: readonly string[]) {
  return z
    .array(entry)
    .min(1)
    .max(maxEntries)
    .meta({ description: meaning, examples: [example] });
}

function mapOf<V extends z.ZodType>(name: z.ZodString, value: V, max = maxEntries) {
  return z
    .record(name, value)
    .refine((map) => Object.keys(map).length <= max, `must have at most ${max} entries`)
    .meta({ maxProperties: max });
}

const oneLine = /^\P{Cc}*$/u;

const serviceName = z
  .string()
  .max(maxServiceNameLength)
  .regex(
    /^[a-z](?:[a-z0-9-]*[a-z0-9])?$/,
    'must begin with a letter, end with a letter or digit, and have only a–z, 0–9 and -',
  );

// A path that leads out of the repository would read or publish files of other owners.
const path = z
  .string()
  .min(1)
  .max(500)
  .regex(
    /^(?!\/|~)(?![A-Za-z]:)(?!(?:.*\/)?\.\.(?:\/|$))[^\\\p{Cc}]*$/u,
    'must be a relative path that stays inside the repository',
  );

const imageName = z
  .string()
  .max(255)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/, 'must be the name of an image, such as node:24');

const command = z
  .string()
  .min(1)
  .max(4_000)
  .regex(/^[^\0]*$/, 'must not contain NUL');

const variableName = z
  .string()
  .max(100)
  .regex(
    /^(?!PORT$)[A-Za-z_][A-Za-z0-9_]*$/,
    'must have only letters, digits and _, must not begin with a digit, and must not be PORT, which Postern sets',
  );
const variableValue = z
  .string()
  .max(maxValueLength)
  .regex(/^[^\0]*$/, 'must not contain NUL');
const variables = mapOf(variableName, variableValue);

const secretName = z
  .string()
  .max(63)
  .regex(
    /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/,
    'must be the name of a stored secret: a–z, 0–9 and -, such as stripe-test',
  );
const secrets = mapOf(variableName, secretName);

const urlPath = z
  .string()
  .max(200)
  .regex(/^\/[A-Za-z0-9._~%/?=&-]*$/, 'must be a path that begins with /, such as /healthz');

const routePath = z
  .string()
  .max(200)
  .regex(
    /^\/(?!\.postern(?:\/|$))(?!(?:.*\/)?(?:\.{0,2})(?:\/|$))[A-Za-z0-9._~/-]*$/,
    'must be a path such as /api: it begins with /, does not end with /, and is not below /.postern',
  );

const cpuWords = 'must be a number of processors, such as 500m (half of one) or 2';
const cpu = z.union([z.string().regex(/^[1-9]\d{0,5}m$/, cpuWords), z.number().min(0.001).max(1_000)], {
  error: cpuWords,
});

const memory = z.string().regex(/^[1-9]\d{0,5}[MG]i$/, 'must be an amount of memory, such as 256Mi or 2Gi');

const build = z.strictObject({
  image: imageName
    .meta({
      description: 'The container image in which the command runs. A process service also runs in it.',
      examples: ['node:24'],
    })
    .optional(),
  command: command
    .meta({
      description: 'Runs in a POSIX shell in `directory`. Without it, the files are used as they are.',
      examples: ['npm ci && npm run build'],
    })
    .optional(),
  directory: path
    .default('.')
    .meta({ description: 'The folder of the service, from the root of the repository.', examples: ['web'] }),
  output: path
    .default('.')
    .meta({ description: 'The folder that the build makes, from `directory`.', examples: ['dist'] }),
  inputs: listOf(
    path,
    'The files that the build reads, as patterns from the root of the repository. Default: everything in `directory`. A service whose inputs did not change is not built again.',
    ['web/**', 'package-lock.json'],
  ).optional(),
  secrets: secrets.default({}).meta({
    description:
      'Secrets that the build reads as files: name of the file → name of the stored secret. The variable BUILD_SECRETS_DIR names their folder.',
    examples: [{ NPM_TOKEN: 'npm-read' }],
  }),
  dockerfile: path
    .meta({
      description:
        'Builds an image from this Dockerfile instead. This version of Postern does not build them.',
      examples: ['legacy/Dockerfile'],
    })
    .optional(),
  target: z
    .string()
    .max(100)
    .regex(/^[A-Za-z0-9._-]+$/, 'must be the name of a stage')
    .meta({ description: 'The stage of the Dockerfile.', examples: ['prod'] })
    .optional(),
});

const run = z.strictObject({
  command: command
    .meta({
      description:
        'Starts the process in a POSIX shell in the built folder. The variable PORT holds the port on which it must listen.',
      examples: ['node server.js'],
    })
    .optional(),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .meta({ description: 'The port on which the process listens.', examples: [8080] }),
  health: urlPath
    .meta({
      description:
        'The process is ready when this path answers with a status below 400. Without it: when the port is open.',
      examples: ['/healthz'],
    })
    .optional(),
  replicas: z
    .int()
    .min(1)
    .max(10)
    .default(1)
    .meta({
      description: 'How many processes run. This version runs one, and refuses to deploy more.',
      examples: [1],
    }),
  resources: z
    .strictObject({
      cpu: cpu.meta({ description: 'Processors: `500m` is half of one.', examples: ['500m'] }).optional(),
      memory: memory.meta({ description: 'Memory, in `Mi` or `Gi`.', examples: ['256Mi'] }).optional(),
    })
    .meta({
      description: 'What one process may use, where the engine can limit it.',
      examples: [{ cpu: '500m', memory: '256Mi' }],
    })
    .optional(),
});

export const service = z
  .strictObject({
    build: build.meta({ description: 'How the files of the service are made.' }).optional(),
    image: imageName
      .meta({
        description: 'A ready container image, which runs as it is, instead of `build`.',
        examples: ['redis:8'],
      })
      .optional(),
    static: z
      .strictObject({
        spa: z
          .boolean()
          .default(false)
          .meta({ description: 'Addresses without a file show the start page.', examples: [true] }),
      })
      .meta({
        description: 'The service is files, which the gateway serves as it serves sites.',
        examples: [{}],
      })
      .optional(),
    run: run.meta({ description: 'The service is a process.', examples: [{ port: 8080 }] }).optional(),
    postgres: z
      .strictObject({
        seed: path
          .meta({
            description: 'An SQL file that fills the new database, once; at most 1 MiB.',
            examples: ['db/seed.sql'],
          })
          .optional(),
      })
      .meta({ description: 'The service is a PostgreSQL database of the Environment’s own.', examples: [{}] })
      .optional(),
    external: z
      .strictObject({
        url: z
          .string()
          .max(500)
          .regex(oneLine, 'must be on one line')
          .refine(isPlainUrl, 'must be an http or https URL without a user name')
          .meta({ description: 'Its address.', examples: ['https://docs.example.com'] }),
      })
      .meta({
        description:
          'The service runs elsewhere: a link and a value for variables. Postern does not connect to it.',
        examples: [{ url: 'https://docs.example.com' }],
      })
      .optional(),
    routes: mapOf(routePath, serviceName)
      .default({})
      .meta({
        description:
          'Paths of this service that another service answers, on the same host: path → service. A page calls its API this way.',
        examples: [{ '/api': 'api' }],
      }),
    env: variables.default({}).meta({
      description:
        'Variables: for the build of a static service, otherwise for the process. A value may contain references, such as `${services.api.url}`.',
      examples: [{ LOG_LEVEL: 'debug' }],
    }),
    secrets: secrets.default({}).meta({
      description: 'Variables whose values are stored secrets: variable → name of the stored secret.',
      examples: [{ STRIPE_KEY: 'stripe-test' }],
    }),
    requires: z
      .array(serviceName)
      .max(maxServices)
      .refine((names) => new Set(names).size === names.length, 'must not name a service twice')
      .default([])
      .meta({
        description: 'Services that are started before this one. They are active whenever this one is.',
        examples: [['db']],
      }),
    exposed: z
      .boolean()
      .meta({
        description: 'Whether the service has its own web address. Default: true; a database never has one.',
        examples: [false],
      })
      .optional(),
  })
  .meta({ oneOf: ['static', 'run', 'postgres', 'external'].map((form) => ({ required: [form] })) });

const environment = z.strictObject({
  ttlHours: z
    .int()
    .min(1)
    .max(maxTtlHours)
    .meta({
      description: 'The lease of a new Environment, in hours. Default and maximum are in the policy.',
      examples: [48],
    })
    .optional(),
  autoTrack: z
    .boolean()
    .default(true)
    .meta({ description: 'Whether a new Environment follows its branch.', examples: [true] }),
  ignoreFiles: listOf(
    path,
    'Files that change nothing, as patterns from the root of the repository. A push that changed only such files, compared with what is served, deploys nothing. A change of postern.yaml always deploys.',
    ['docs/**', '*.md'],
  ).optional(),
  access: z
    .enum(accessKinds)
    .meta({
      description:
        'Who can open a new Environment: its creator, everyone who can sign in, or everyone. The policy can allow less. A later push does not change it.',
      examples: ['members'],
    })
    .default('members'),
  env: variables
    .default({})
    .meta({ description: 'Variables of every service.', examples: [{ LOG_LEVEL: 'debug' }] }),
});

/** Only the command line uses it: cli/src/deploy/project-file.ts. */
const site = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z0-9]{10}$/, 'must be the id of a site: 10 letters and digits')
    .meta({ description: 'Its id.', examples: ['k3v9x0q2m7'] })
    .optional(),
  server: z
    .string()
    .max(500)
    .refine(isPlainUrl, 'must be an http or https URL without a user name')
    .meta({
      description: 'The server that has the site. `postern deploy` to another server is an error.',
      examples: ['https://postern.example.com'],
    })
    .optional(),
  folder: path
    .meta({
      description:
        'The folder to publish. Default: the output of the only static service, or a folder with a usual name.',
      examples: ['dist'],
    })
    .optional(),
});

export const configurationFile = z.strictObject({
  version: z.literal(1).meta({ description: 'The version of this format.', examples: [1] }),
  site: site
    .meta({
      description: 'The site to which `postern deploy` publishes. Environments do not use it.',
      examples: [{ id: 'k3v9x0q2m7', folder: 'dist' }],
    })
    .optional(),
  environment: environment
    .prefault({})
    .meta({ description: 'Defaults of a new Environment.', examples: [{ ttlHours: 48 }] }),
  services: mapOf(serviceName, service, maxServices)
    .refine((services) => Object.keys(services).length > 0, 'must have at least one service')
    .meta({
      minProperties: 1,
      description: 'The services by name. A name is a DNS label of at most 40 characters.',
    }),
});

export type ConfigurationFile = z.output<typeof configurationFile>;
export type Service = z.output<typeof service>;
export type Build = z.output<typeof build>;
export type Run = z.output<typeof run>;

function isPlainUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}
