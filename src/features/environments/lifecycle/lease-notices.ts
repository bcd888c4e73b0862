import { type Clock, day, hour, timestamp } from '../../../core/clock.ts';
import type { Tx } from '../../../platform/database/database.ts';
import {
  type LeaseNoticeKind,
  type NewEnvironmentNotice,
  type NoticeWriter,
  recipientOf,
} from '../../notices/notices.ts';
import type { Environment } from '../environment/environment.ts';
import type { EnvironmentStore } from '../environment/environment-store.ts';

/** Notifies the creators of Environments a day and an hour before a lease ends. An extended lease gets new notices. */
export function createLeaseNotices(deps: {
  readonly read: { readonly environments: Pick<EnvironmentStore, 'expiringBetween'> };
  readonly tx: Tx<{ readonly notices: NoticeWriter }>;
  readonly clock: Clock;
}): { run(): Promise<void> } {
  const { read, tx, clock } = deps;

  async function warn(kind: LeaseNoticeKind, from: number, noticeMs: number): Promise<void> {
    const found = await read.environments.expiringBetween(from, clock.now() + noticeMs);
    // The creator of a shorter lease knew its end from the start.
    const news = found.filter(({ createdAt, expiresAt }) => expiresAt - createdAt > noticeMs);
    if (news.length === 0) return;
    await tx(async ({ notices }) => {
      for (const environment of news) await notices.add(leaseNotice(kind, environment));
    });
  }

  return {
    async run() {
      const now = clock.now();
      await warn('environment_expires_1h', now, hour);
      await warn('environment_expires_1d', now + hour, day);
    },
  };
}

export function leaseNotice(
  kind: LeaseNoticeKind,
  { id, uuid, creator, expiresAt }: Pick<Environment, 'id' | 'uuid' | 'creator' | 'expiresAt'>,
): NewEnvironmentNotice {
  const at = timestamp(expiresAt);
  return {
    recipient: recipientOf(creator),
    kind,
    environmentId: id,
    occasion: at,
    fields: { environmentName: uuid, expiresAt: at },
  };
}
