import { readConfig } from '../../src/config.ts';
import { serve } from '../../src/serve.ts';

// The server as npm start runs it, but one person may change as much as the fuzzer likes (schemathesis.sh).
process.exit(await serve(readConfig(), 'all', { changesPerMinute: 1_000_000 }));
