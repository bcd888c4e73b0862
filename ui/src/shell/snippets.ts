/**
 * Commands to paste into a shell. The value of a key is in the variable POSTERN_KEY, never in the text. No line follows
 * one that prompts for input, because the prompt would read it as the input.
 */
const auth = '-H "Authorization: Bearer $POSTERN_KEY"';

/** Prompts for the value without showing it or leaving it in the shell history. */
export const readKey = "printf 'Key: ' && read -rs POSTERN_KEY && export POSTERN_KEY && echo";

export function askWhoAmI(): string {
  return `curl ${location.origin}/api/v2/auth/context \\\n  ${auth}`;
}

/** Publishes a new site of one page from the current folder. */
export function publishPage(): string {
  return `echo '<h1>Hello</h1>' > index.html\ncurl ${location.origin}/api/v2/sites \\\n  ${auth} \\\n  -F name=Hello -F visibility=public -F file=@index.html`;
}

/** Publishes the next version of a site from the folder `my-site`. */
export function publishFolder(siteId: string): string {
  return `tar -cz -C my-site . | curl -X PUT -F 'file=@-;filename=site.tar.gz' \\\n  ${auth} \\\n  ${location.origin}/api/v2/sites/${siteId}/content`;
}

/** Sets the server of the command line, and shows what the key in POSTERN_KEY may do. */
export function tryCommandLine(): string {
  return `export POSTERN_URL=${location.origin}\npostern whoami`;
}

/** Which site a deploy publishes to. Without an id: the one that postern.site.json remembers, or a new one. */
export type DeployTo = {
  readonly siteId?: string;
  /** The sites of a service key are public, so the deploy needs --public. */
  readonly isServiceKey?: boolean;
};

/** The same, to publish the folder `dist`. */
export function deployFolder(to: DeployTo = {}): string {
  return `export POSTERN_URL=${location.origin}\npostern ${deployWith(to)}`;
}

function deployWith({ siteId, isServiceKey }: DeployTo): string {
  return `deploy dist${siteId === undefined ? '' : ` --site ${siteId}`}${isServiceKey ? ' --public' : ''}`;
}

/** Downloads the command line of this server, and checks that it is the one of the digest. */
export function getCommandLine(digest: string): string {
  return [
    fetchCommandLine(),
    `echo "${digest}  postern.mjs" | sha256sum --check`,
    'alias postern="node $PWD/postern.mjs"',
  ].join('\n');
}

function fetchCommandLine(): string {
  return `curl -sSfO ${location.origin}/cli/postern.mjs`;
}

/**
 * A job that publishes the folder `dist`, with the key in a secret POSTERN_KEY. It runs the command line of this server, so an
 * upgrade of the server does not break it (decision 0080).
 */
export function githubJob(to: DeployTo): string {
  return `publish:
  runs-on: ubuntu-latest
  steps:
    - uses: actions/checkout@v5
    - uses: actions/setup-node@v5
      with: { node-version: 24 }
    - run: npm ci && npm run build
    - run: |
        ${fetchCommandLine()}
        node postern.mjs ${deployWith(to)}
      env:
        POSTERN_URL: ${location.origin}
        POSTERN_KEY: \${{ secrets.POSTERN_KEY }}`;
}

/** The same for GitLab, with the key in a masked variable POSTERN_KEY. */
export function gitlabJob(to: DeployTo): string {
  return `publish:
  image: node:24
  variables:
    POSTERN_URL: ${location.origin}
  script:
    - npm ci && npm run build
    - ${fetchCommandLine()}
    - node postern.mjs ${deployWith(to)}`;
}

/** A job that exchanges its ID token for a token of a service key. */
type PipelineJob = {
  readonly keyId: string;
  /** Whether the key may publish; otherwise the job only shows what the key may do. */
  readonly canPublish: boolean;
  /** The claims of a trust rule that the job fits. */
  readonly claims: Readonly<Record<string, string>>;
};

/** A site belongs to the key that created it, so a job creates it. */
export const createSite = 'node postern.mjs sites create --name NAME --visibility public --fields id';

function commandOf({ canPublish }: PipelineJob): string {
  return `node postern.mjs ${canPublish ? deployWith({ siteId: 'SITE_ID', isServiceKey: true }) : 'whoami'}`;
}

/** A job for GitHub Actions without a secret: the command line gets the ID token of the job. */
export function githubPipeline(job: PipelineJob): string {
  const { environment } = job.claims;
  const isNamed = environment !== undefined && !environment.endsWith('*');
  return `publish:
  runs-on: ubuntu-latest${isNamed ? `\n  environment: ${JSON.stringify(environment)}` : ''}
  permissions: { contents: read, id-token: write }
  steps:
    - uses: actions/checkout@v5
    - uses: actions/setup-node@v5
      with: { node-version: 24 }
    - run: npm ci && npm run build
    - run: |
        ${fetchCommandLine()}
        ${commandOf(job)}
      env:
        POSTERN_URL: ${location.origin}
        POSTERN_KEY_ID: ${job.keyId}`;
}

/** The same for GitLab, which puts the ID token into a variable. */
export function gitlabPipeline(job: PipelineJob): string {
  return `publish:
  image: node:24
  id_tokens:
    POSTERN_ID_TOKEN:
      aud: ${location.origin}
  variables:
    POSTERN_URL: ${location.origin}
    POSTERN_KEY_ID: ${job.keyId}
  script:
    - npm ci && npm run build
    - ${fetchCommandLine()}
    - ${commandOf(job)}`;
}

/** The same for Kubernetes, which puts the ID token into a file. IMAGE has Node, curl and the folder `dist`. */
export function kubernetesPipeline(job: PipelineJob): string {
  const namespace = job.claims['/kubernetes.io/namespace'] ?? 'NAMESPACE';
  const account = job.claims['/kubernetes.io/serviceaccount/name'] ?? 'SERVICE_ACCOUNT';
  return `apiVersion: batch/v1
kind: Job
metadata: { name: publish, namespace: ${JSON.stringify(namespace)} }
spec:
  backoffLimit: 0
  template:
    spec:
      serviceAccountName: ${JSON.stringify(account)}
      restartPolicy: Never
      containers:
        - name: publish
          image: IMAGE
          command: ["sh", "-ec"]
          args:
            - |
              ${fetchCommandLine()}
              ${commandOf(job)}
          env:
            - { name: POSTERN_URL, value: "${location.origin}" }
            - { name: POSTERN_KEY_ID, value: "${job.keyId}" }
            - { name: POSTERN_ID_TOKEN_FILE, value: /var/run/postern/token }
          volumeMounts:
            - { name: id-token, mountPath: /var/run/postern, readOnly: true }
      volumes:
        - name: id-token
          projected:
            sources:
              - serviceAccountToken: { path: token, audience: "${location.origin}", expirationSeconds: 3600 }`;
}
