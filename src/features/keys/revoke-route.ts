import { z } from 'zod';
import { timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { defineRoute, type Route } from '../../platform/http.ts';
import { exampleKey } from './examples.ts';
import type { Keys } from './keys.ts';
import { revokedKeySchema, revokeKeysSchema } from './schemas.ts';

/** Revokes many keys at once, with a reason. Administrators use it after a leak, and for keys that are no longer needed. */
export function revokeKeysRoute({ keys }: { keys: Pick<Keys, 'which' | 'revoke'> }): Route {
  return defineRoute({
    method: 'POST',
    path: '/tokens/revoke',
    operationId: 'revokeManagedKeys',
    tag: 'Service keys',
    summary: 'Revoke managed keys, with a reason',
    description:
      'Up to 100 keys of services and users. If one id does not exist, no key is revoked. Final before the response is sent. Writes one event for each key. A repeated request returns the same times.',
    // Applies to every revocation: the change limit must not delay the containment of a leak.
    policy: { callers: ['session'], role: 'admin', identity: 'live', exemptFromChangeLimit: true },
    body: revokeKeysSchema,
    errors: ['token_not_found'],
    success: { status: 200, data: z.array(revokedKeySchema) },
    example: {
      body: { ids: [exampleKey.id], note: 'Found in a public log' },
      data: [{ id: exampleKey.id, revokedAt: '2026-01-02T09:00:00.000Z' }],
    },
    async handle({ auditContext, body: { ids, note } }) {
      const found = await keys.which({ kind: 'any' }, ids);
      if (found.length < ids.length) throw new AppError('token_not_found');
      const data: { id: string; revokedAt: string }[] = [];
      for (const id of ids) {
        const { revokedAt } = await keys.revoke(auditContext, { kind: 'any' }, id, 'administrator', note);
        data.push({ id, revokedAt: timestamp(revokedAt) });
      }
      return { data };
    },
  });
}
