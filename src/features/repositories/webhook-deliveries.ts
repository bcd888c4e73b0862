import type { RequestOrigin } from '../../core/caller.ts';
import { day } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Random } from '../../core/ids.ts';
import type { ChangeStore } from '../../platform/database/change-feed.ts';
import type { Tx } from '../../platform/database/database.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import type { Kv } from '../../platform/kv/kv.ts';
import type { Repositories } from './repositories.ts';
import { isProven, newWebhookSecret, type Proof } from './webhook.ts';

/** What a git server sends. Nothing of its body is believed, so only the proof reads it. */
export type Delivery = {
  /** Undefined: the request carries neither a signature nor a token. */
  readonly proof: Proof | undefined;
  readonly isPush: boolean;
  /** The same each time that the git server sends it again. Nothing signs it. */
  readonly id: string | undefined;
};

/**
 * Webhooks of git servers. A push is only a hint that the repository has new commits: it becomes a change with the topic
 * `push`, and what follows it asks git.
 */
export type WebhookDeliveries = {
  /**
   * `queued`: git will be asked. `nothing`: another event, or a delivery that was received before.
   * @throws AppError invalid_credential, rate_limited, invalid_body, body_too_large, store_unavailable
   */
  receive(origin: RequestOrigin, repositoryId: string, delivery: Delivery): Promise<'queued' | 'nothing'>;
};

/** How long GitHub can send a delivery again. */
const rememberedMs = 3 * day;

const notProven = new AppError('invalid_credential', {
  message: 'The delivery is not signed with the webhook secret of this repository.',
  hint: 'Create a new secret in Postern, and store it in the settings of the webhook at the git server.',
});

export function createWebhookDeliveries(deps: {
  readonly repositories: Pick<Repositories, 'webhookSecretOf'>;
  readonly kv: Pick<Kv, 'get' | 'set'>;
  readonly tx: Tx<{ changes: ChangeStore }>;
  /** Counts a bad credential of the address, and returns the error that refuses it. */
  readonly refuse: (origin: RequestOrigin, error: AppError) => AppError;
  readonly random: Random;
}): WebhookDeliveries {
  const { repositories, kv, tx, refuse, random } = deps;
  // A repository without a secret costs the same work, so that time does not tell which repositories have one.
  const unknownSecret = newWebhookSecret(random);

  return {
    async receive(origin, repositoryId, { proof, isPush, id }) {
      if (proof === undefined) throw refuse(origin, notProven);
      const secret = (await repositories.webhookSecretOf(repositoryId)) ?? unknownSecret;
      if (!(await isProven(proof, secret))) throw refuse(origin, notProven);
      if (!isPush) return 'nothing';
      const known = `webhook-delivery:${repositoryId}:${secretDigest(nameOf(proof, id))}`;
      if ((await kv.get(known)) !== null) return 'nothing';
      await tx((stores) => stores.changes.publish({ topic: 'push', subject: repositoryId }));
      // Last, so that a delivery that fails can be sent again. Two at once cost one look at the repository.
      await kv.set(known, '1', { ttlMs: rememberedMs });
      return 'queued';
    },
  };
}

/**
 * A signature belongs to one body, so Postern recognizes a captured delivery under any id. A token says nothing about the
 * body. @throws AppError invalid_body
 */
function nameOf(proof: Proof, id: string | undefined): string {
  if (proof.kind === 'signature') return proof.signature;
  if (id === undefined) throw new AppError('invalid_body', { message: 'The delivery has no id.' });
  return id;
}
