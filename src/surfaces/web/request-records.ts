import type { FastifyRequest } from 'fastify';
import { actorOf, type Caller, type RequestOrigin } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { AppError } from '../../core/errors.ts';
import type { Denials } from '../../features/audit/denials.ts';
import type { UsageMeter } from '../../features/keys/usage.ts';

/** Records of requests: refusals in the audit log, and the outcomes of requests with a key. */
export type RequestRecords = {
  /** Every refusal passes through here once. */
  denied(error: AppError, caller: Caller, route: string, origin: RequestOrigin): void;
  finished(request: FastifyRequest, status: number): void;
};

export function createRequestRecords({
  denials,
  usage,
  recordFirstUse,
  clock,
}: {
  readonly denials: Denials;
  readonly usage: Pick<UsageMeter, 'count'>;
  readonly recordFirstUse: (keyId: string, at: number) => void;
  readonly clock: Clock;
}): RequestRecords {
  return {
    denied(error, caller, route, origin) {
      if (
        ![401, 403, 429].includes(error.status) &&
        error.code !== 'credential_in_url' &&
        error.code !== 'ambiguous_credential'
      )
        return;
      denials.record({
        event: 'auth.denied',
        reason: error.code,
        auditContext: { actor: actorOf(caller), origin },
        target: { kind: 'route', id: route },
      });
    },
    finished({ keyUse, origin }, status) {
      if (keyUse === null) return;
      const { key } = keyUse.live;
      usage.count(
        key.id,
        status < 400 ? 'allowed' : status === 429 ? 'limited' : status < 500 ? 'denied' : 'failed',
        origin,
        keyUse.isCheck,
      );
      if (status < 400 && !keyUse.isCheck && key.replaces !== null && key.firstUsedAt === null)
        recordFirstUse(key.id, clock.now());
    },
  };
}
