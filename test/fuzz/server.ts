import { readConfig } from '../../src/config/read.ts';
import { serve } from '../../src/run/serve.ts';

// The server as npm start runs it, but one person may change as much as the fuzzer likes (schemathesis.sh).
process.exit(await serve(readConfig(), 'all', { changesPerMinute: 1_000_000 }));
