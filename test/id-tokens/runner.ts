import { createServer } from 'node:http';
import type { Platform } from './platforms.ts';

/** A runner of GitHub Actions, as a job sees it: an address that returns an ID token for the audience in the query. */
export type Runner = {
  /** The variables of a job with `permissions: id-token: write`. */
  readonly env: Readonly<Record<string, string>>;
  /** The ID tokens that were given. */
  readonly given: readonly string[];
  close(): void;
};

const secret = 'secret-of-the-runner';

/** `more` replaces claims of each ID token. */
export async function startRunner(platform: Platform, more: object = {}): Promise<Runner> {
  const given: string[] = [];
  const server = createServer((request, response) => {
    const audience = URL.parse(request.url ?? '', 'http://runner')?.searchParams.get('audience') ?? '';
    const isJob = request.headers.authorization === `Bearer ${secret}`;
    void platform.sign({ ...platform.claims(Date.now(), audience), ...more }).then((value) => {
      if (isJob) given.push(value);
      response.writeHead(isJob ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify(isJob ? { count: 1, value } : {}));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The runner has no port.');
  return {
    env: {
      GITHUB_ACTIONS: 'true',
      CI: 'true',
      ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${address.port}/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: secret,
    },
    given,
    close: () => void server.close(),
  };
}
