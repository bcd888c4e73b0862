import { readConfig } from '../../src/config/read.ts';
import { networkFetch } from '../../src/platform/fetch.ts';
import { serve } from '../../src/run/serve.ts';

// A web process or a worker as an operator starts it, but issuers of ID tokens are on loopback, without TLS.
const workload = process.argv[2] === 'worker' ? 'worker' : 'web';
process.exit(
  await serve(
    readConfig(process.env, workload),
    workload,
    {},
    { outboundFetch: (url, init) => networkFetch(url.replace('https:', 'http:'), init) },
  ),
);
