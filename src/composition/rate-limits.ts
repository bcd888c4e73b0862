import { createChangeLimit } from '../features/rate-limit/change-limit.ts';
import {
  addressBucket,
  createFailedAuth,
  createRateLimiter,
  type LimitSource,
  memorySource,
} from '../features/rate-limit/rate-limit.ts';
import type { Part, Process } from './part.ts';

/** Metadata documents of MCP clients that one network address may have fetched. */
const documentsPerMinute = 10;

export function createRateLimitsPart({
  source,
  clock,
  random,
  changesPerMinute,
  onFallback,
}: Pick<Process, 'clock' | 'random'> & {
  readonly source: LimitSource;
  readonly changesPerMinute: number | undefined;
  readonly onFallback: () => void;
}) {
  const limiter = createRateLimiter({ source, fallback: memorySource({ clock }), clock, random, onFallback });
  const services = {
    limiter,
    failedAuth: createFailedAuth({ clock }),
    changeLimit: createChangeLimit({ limiter, perMinute: changesPerMinute }),
    async mayFetchDocument(address: string | null): Promise<boolean> {
      const owner = `mcp-document:${address === null ? 'interaction' : addressBucket(address)}`;
      return (await limiter.spend({ owner, key: '', limit: documentsPerMinute })).allowed;
    },
  };
  return { services } satisfies Part;
}
