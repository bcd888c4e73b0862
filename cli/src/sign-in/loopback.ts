import { once } from 'node:events';
import { createServer } from 'node:http';

/** A port of the loopback address to which a browser returns the answer of a sign-in. */
export type RedirectReceiver = {
  readonly redirectUri: string;
  /** The query of the first request that has the state; closes the port. */
  answer(): Promise<URLSearchParams>;
};

export async function redirectReceiver(state: string): Promise<RedirectReceiver> {
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>();
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '', 'http://127.0.0.1');
    const isAnswer = url?.pathname === '/callback' && url.searchParams.get('state') === state;
    response.writeHead(isAnswer ? 200 : 400, {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      connection: 'close',
    });
    response.end(isAnswer ? answerPage(url.searchParams) : strangerPage);
    if (isAnswer) resolve(url.searchParams);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The loopback address has no port.');
  return {
    redirectUri: `http://127.0.0.1:${address.port}/callback`,
    async answer() {
      const query = await promise;
      server.close();
      return query;
    },
  };
}

const strangerPage = page(
  'Unknown sign-in',
  'It has expired, or another program started it. Run postern login again.',
);

function answerPage(answer: URLSearchParams): string {
  if (answer.get('error') === 'access_denied')
    return page('You declined the sign-in', 'Nothing was changed. You can close this page.');
  return answer.has('error')
    ? page('The sign-in failed', 'The terminal says why. You can close this page.')
    : page('Return to your terminal', 'The command line received your answer. You can close this page.');
}

/** The page contains no value of the request: anyone can send one. */
function page(title: string, text: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${title} · Postern</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  main { max-width: 28rem; margin: 20vh auto 0; padding: 0 1.5rem; }
  h1 { font-size: 1.5rem; }
</style>
<main>
<p>Postern</p>
<h1>${title}</h1>
<p>${text}</p>
</main>
</html>
`;
}
