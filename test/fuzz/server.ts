import { readConfig } from '../../src/config/read.ts';
import { serve } from '../../src/run/serve.ts';
import { externalServer } from './external-server.ts';

// The server as npm start runs it, but one person may change as much as the fuzzer likes (schemathesis.sh), and addresses
// that the fuzzer enters reach nothing.
process.exit(
  await serve(readConfig(), 'all', { changesPerMinute: 1_000_000 }, { outboundFetch: externalServer }),
);
