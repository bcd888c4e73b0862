import { type Clock, minute } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Random } from '../../core/ids.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import { inBatches } from '../../platform/in-batches.ts';
import type { KeyFormat } from '../keys/keys.ts';
import type { McpUpload, McpUploadStore, UploadOffer } from './mcp-upload-store.ts';
import type { AgentGrant } from './session-store.ts';

/**
 * Addresses to which agents upload the files of a site, each with a token for one use within ten minutes. A token gives
 * no right: its request passes every check again (surfaces/mcp/upload-page.ts).
 */
export type McpUploads = {
  /** @throws AppError state_conflict if Postern could not check the consent again */
  offer(
    offer: UploadOffer,
  ): Promise<{ readonly id: string; readonly token: string; readonly expiresAt: number }>;
  /** Undefined: the token is invalid, used or expired. */
  find(token: string): Promise<McpUpload | undefined>;
  /** If several requests use the token at once, only one succeeds. */
  use(token: string): Promise<boolean>;
  /** Removes expired uploads. */
  prune(): Promise<void>;
};

export type { McpUpload };

const livesMs = 10 * minute;
const prunedAtOnce = 500;

export function createMcpUploads(deps: {
  readonly read: { readonly mcpUploads: McpUploadStore };
  readonly format: Pick<KeyFormat, 'generateUploadToken' | 'uploadIdIn'>;
  /** Null: the identity provider does not say. */
  readonly isGrantLive: (grant: AgentGrant) => Promise<boolean | null>;
  readonly clock: Clock;
  readonly random: Random;
}): McpUploads {
  const { format, clock, random } = deps;
  const { mcpUploads } = deps.read;

  function presented(token: string) {
    const id = format.uploadIdIn(token);
    return id === undefined ? undefined : { id, tokenHash: secretDigest(token) };
  }

  return {
    async offer(offer) {
      if ((await deps.isGrantLive(offer)) === null)
        throw new AppError('state_conflict', {
          message: 'The identity provider does not tell Postern whether a consent still holds.',
          hint: 'Postern gives no upload address here. Send the files in the call itself, or publish them with a key.',
        });
      const { id, value } = format.generateUploadToken(random);
      const expiresAt = clock.now() + livesMs;
      await mcpUploads.insert({ ...offer, id, tokenHash: secretDigest(value), expiresAt });
      return { id, token: value, expiresAt };
    },
    async find(token) {
      const known = presented(token);
      return known === undefined ? undefined : await mcpUploads.find(known, clock.now());
    },
    async use(token) {
      const known = presented(token);
      return known !== undefined && (await mcpUploads.use(known, clock.now()));
    },
    prune: () => inBatches(prunedAtOnce, (limit) => mcpUploads.prune(clock.now(), limit)),
  };
}
