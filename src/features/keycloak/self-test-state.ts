import { type Clock, second } from '../../core/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { SelfTest, SelfTestResult } from './self-test.ts';

/**
 * Stores whether the realm has passed the self-test. Until it has, Postern uses none of its answers. An outage does not
 * change a passed result; a mistake made in the realm later does (fail closed).
 */
export type SelfTestState = {
  /** True = the realm may be used. Until it has passed, runs the self-test, at most once a second. */
  holds(): Promise<boolean>;
  /** Runs the self-test now. */
  check(): Promise<SelfTestResult>;
};

const againMs = second;

export function createSelfTestState(deps: { selfTest: SelfTest; clock: Clock; log: Log }): SelfTestState {
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
      log.error({ check, setting, problem, fix }, 'identity provider: the self-test failed');
    } else if (before !== 'passed') {
      log.warn({ check: result.check, reason: result.reason }, 'identity provider: cannot be reached');
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
