import { decide, type PrincipalFacts } from '../src/core/authorize.ts';
import type { Caller } from '../src/core/caller.ts';
import { AppError } from '../src/core/errors.ts';
import type { Gate } from '../src/surfaces/web/gate.ts';

/** A gate with one fixed caller that enforces the routes' real policies. For tests of one feature's routes. */
export function fixedGate(
  caller: Caller | (() => Caller),
  principal: () => PrincipalFacts = () => ({ kind: 'active', roles: ['user', 'admin'] }),
): Gate {
  return {
    refuseStrayKeys: () => undefined,
    authenticate: () => (typeof caller === 'function' ? caller() : caller),
    limit: () => undefined,
    limitChange: () => undefined,
    principal,
    authorize(who, policy, facts) {
      const { denial } = decide(who, policy, facts);
      if (denial !== null)
        throw new AppError(denial.code, denial.details === undefined ? {} : { details: denial.details });
    },
    readmit: async () => undefined,
    denied: () => undefined,
    finished: () => undefined,
  };
}
