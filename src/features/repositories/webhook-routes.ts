import { z } from 'zod';
import { defineRoute, type Route, type RouteRequest } from '../../platform/http.ts';
import type { Proof } from './webhook.ts';
import type { Delivery, WebhookDeliveries } from './webhook-deliveries.ts';

const queuedSchema = z
  .strictObject({ queued: z.boolean().describe('Whether Postern now asks git for new commits') })
  .meta({ id: 'WebhookDelivery' });

/** The route to which git servers send webhooks. The other routes of repositories change the webhook itself. */
export function webhookRoute(deliveries: WebhookDeliveries): Route {
  return defineRoute({
    method: 'POST',
    path: '/webhooks/git/{repositoryId}',
    operationId: 'receiveGitWebhook',
    tag: 'Repositories',
    summary: 'Receive a webhook of a git server',
    description:
      'GitHub signs the body with the secret in `X-Hub-Signature-256`; GitLab sends the secret in `X-Gitlab-Token`. ' +
      'After a push (`X-GitHub-Event: push` or `X-Gitlab-Event: Push Hook`), Postern asks git for new commits and deploys the Environments that follow their branch. ' +
      'It uses nothing of the body, which may have 25 MiB. Other events do nothing. ' +
      'A delivery is known for three days, by its signature or by the `Idempotency-Key` or `X-Gitlab-Event-UUID` of GitLab, and does nothing the second time.',
    policy: { callers: 'git_server', identity: 'none' },
    params: z.strictObject({
      repositoryId: z
        .string()
        .meta({ description: 'The id of the repository', examples: ['repo_7bXk2mQ9sTzLr4VnYc3D'] }),
    }),
    uploads: ['application/json', 'application/x-www-form-urlencoded'],
    success: {
      status: 202,
      data: queuedSchema,
      replay: 'Nothing was done: another event, or a delivery that was received before',
    },
    example: { data: { queued: true } },
    async handle({ origin, params, header, upload }) {
      const delivery = deliveryOf(header, upload);
      const outcome = await deliveries.receive(origin, params.repositoryId, delivery);
      return outcome === 'queued' ? { data: { queued: true } } : { status: 200, data: { queued: false } };
    },
  });
}

type Upload = RouteRequest<unknown, unknown, unknown>['upload'];

function deliveryOf(header: (name: string) => string | undefined, upload: Upload): Delivery {
  return {
    proof: proofOf(header, upload),
    isPush: header('x-github-event') === 'push' || header('x-gitlab-event') === 'Push Hook',
    // GitLab uses one event id for all events that follow from each other, so its newer header comes first.
    id: header('idempotency-key') ?? header('x-gitlab-event-uuid'),
  };
}

function proofOf(header: (name: string) => string | undefined, upload: Upload): Proof | undefined {
  const signature = header('x-hub-signature-256');
  if (signature !== undefined) return { kind: 'signature', signature, body: bytesOf(upload) };
  const token = header('x-gitlab-token');
  return token === undefined ? undefined : { kind: 'token', token };
}

async function* bytesOf(upload: Upload): AsyncGenerator<Uint8Array> {
  if (upload === null) return;
  for await (const part of upload.parts()) if (part.kind === 'file') yield* part.stream;
}
