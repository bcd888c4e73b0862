import type { PrincipalFacts } from '../src/core/authorize.ts';
import { anonymous, type Caller } from '../src/core/caller.ts';
import { createAuthorization } from '../src/surfaces/web/authorization.ts';
import type { RequestStepsDeps } from '../src/surfaces/web/request-steps.ts';
import type { RequestRecords } from '../src/surfaces/web/request-records.ts';

/** Steps with one fixed caller that enforce the routes' real policies. For tests of one feature's routes. */
export function fixedCaller(
  caller: Caller | (() => Caller),
  principal: () => PrincipalFacts = () => ({ kind: 'active', roles: ['user', 'admin'] }),
): Pick<RequestStepsDeps, 'authentication' | 'authorization' | 'limits' | 'openStreams'> & {
  records: RequestRecords;
} {
  const callerNow = () => (typeof caller === 'function' ? caller() : caller);
  return {
    authentication: {
      authenticate: async () => callerNow(),
      authenticateAgain: async () => callerNow(),
      refuseStrayKeys: () => undefined,
    },
    authorization: createAuthorization({
      identityCheck: { ofCaller: principal },
      freshProof: { refusal: async () => null },
      async tokenOfSession() {
        const now = callerNow();
        return now.kind === 'session' ? { kind: 'active', introspection: now.user } : { kind: 'ended' };
      },
    }),
    limits: { limitKey: () => undefined, limitChange: async () => undefined },
    openStreams: { enter: () => () => undefined },
    records: { denied: () => undefined, finished: () => undefined },
  };
}

export const nobody = fixedCaller(anonymous);
