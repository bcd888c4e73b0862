import { type Clock, second } from '../../../core/clock.ts';
import type { Log } from '../../../platform/log.ts';
import type { SelfTest, SelfTestResult } from './self-test.ts';

/**
 * Remembers whether the realm has proved to be set up rightly. Until it has, nothing it says counts; once it has, an
 * outage changes nothing about that, and a mistake made there later closes it again (fail closed).
 */
export type Proof = {
  /** True = the realm may be asked. Tries to find out when that is not known yet. */
  holds(): Promise<boolean>;
  /** Runs the self-test now. */
  check(): Promise<SelfTestResult>;
};

const againMs = second;

export function createProof(deps: { selfTest: SelfTest; clock: Clock; log: Log }): Proof {
  const { clock, log } = deps;
  let verdict: 'unknown' | 'passed' | 'refused' = 'unknown';
  let running: Promise<SelfTestResult> | undefined;
  let triedAt = Number.NEGATIVE_INFINITY;

  function settle(result: SelfTestResult): SelfTestResult {
    const before = verdict;
    if (result.kind === 'passed') {
      verdict = 'passed';
      if (before !== 'passed') log.info({}, 'identity provider: the self-test passed');
    } else if (result.kind === 'refused') {
      verdict = 'refused';
      const { check, setting, problem, fix } = result;
      log.error({ check, setting, problem, fix }, 'identity provider: the self-test found a mistake');
    } else if (before !== 'passed') {
      log.warn({ check: result.check, reason: result.reason }, 'identity provider: cannot be asked');
    }
    return result;
  }

  function check(): Promise<SelfTestResult> {
    triedAt = clock.now();
    running ??= deps
      .selfTest()
      .then(settle)
      .finally(() => (running = undefined));
    return running;
  }

  return {
    check,
    async holds() {
      if (verdict === 'passed') return true;
      const since = clock.now() - triedAt;
      if (running === undefined && since >= 0 && since < againMs) return false;
      return (await check()).kind === 'passed';
    },
  };
}
