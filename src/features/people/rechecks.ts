import type { UserRef } from '../../core/caller.ts';
import type { ChangeFeed } from '../../platform/database/change-feed.ts';
import type { Log } from '../../platform/log.ts';

/** A changed account affects what its person holds at once, not only at the next sweep. */
export function createRechecks({
  feed,
  findUser,
  check,
  log,
}: {
  readonly feed: Pick<ChangeFeed, 'subscribe'>;
  readonly findUser: (subject: string) => Promise<UserRef | undefined>;
  readonly check: (userId: string) => Promise<void>;
  readonly log: Log;
}): { settled(): Promise<void> } {
  const running = new Set<Promise<void>>();
  feed.subscribe(({ topic, subject }) => {
    if (topic !== 'principal') return;
    const recheck = findUser(subject)
      .then(async (user) => {
        if (user !== undefined) await check(user.id);
      })
      .catch((error: unknown) =>
        log.warn({ err: error }, 'could not check the owner of a key again; the owner sweep does it'),
      )
      .finally(() => running.delete(recheck));
    running.add(recheck);
  });
  return { settled: async () => void (await Promise.all(running)) };
}
