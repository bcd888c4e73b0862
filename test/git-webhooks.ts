import { createHash, createHmac, randomUUID } from 'node:crypto';
import type { CallOptions } from './harness.ts';

/**
 * Webhooks as GitHub and GitLab send them. The payloads have the documented fields that matter to most receivers; refs and
 * commits in them are of a repository that does not exist.
 */
export type WebhookOptions = {
  readonly event?: string;
  /** Default: a new one. Null: none. */
  readonly delivery?: string | null;
  readonly body?: string;
};

const before = '6113728f27ae82c7b1a177c8d03f9e96e0adf246';
const after = 'da1560886d4f094c3e6c9ef40349f7d38b5d27d7';
const author = { name: 'Grace', email: 'grace@example.com' };

const githubPush = JSON.stringify({
  ref: 'refs/heads/never-there',
  before,
  after,
  created: false,
  deleted: false,
  forced: false,
  compare: `https://github.com/elsewhere/website/compare/${before.slice(0, 12)}...${after.slice(0, 12)}`,
  repository: {
    id: 35129377,
    full_name: 'elsewhere/website',
    private: false,
    clone_url: 'https://evil.example.com/website.git',
    default_branch: 'main',
  },
  pusher: author,
  head_commit: { id: after, message: 'Change the greeting', author, added: [], removed: [], modified: ['a'] },
  commits: [{ id: after, message: 'Change the greeting', author, added: [], removed: [], modified: ['a'] }],
});

/** Each push has a different body; a repeated delivery has the same body. */
const githubPushOf = (delivery: string | null) =>
  githubPush.replaceAll(
    after,
    createHash('sha1')
      .update(delivery ?? '')
      .digest('hex'),
  );

const gitlabPush = JSON.stringify({
  object_kind: 'push',
  event_name: 'push',
  before,
  after,
  ref: 'refs/heads/never-there',
  checkout_sha: after,
  user_username: 'grace',
  project_id: 15,
  project: {
    id: 15,
    path_with_namespace: 'elsewhere/website',
    git_http_url: 'https://evil.example.com/website.git',
    default_branch: 'main',
  },
  commits: [{ id: after, message: 'Change the greeting', author, added: [], removed: [], modified: ['a'] }],
  total_commits_count: 1,
});

const signatureOf = (secret: string, body: string) =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

export function fromGithub(
  secret: string,
  { event = 'push', delivery = randomUUID(), body = githubPushOf(delivery) }: WebhookOptions = {},
): CallOptions {
  return {
    raw: { type: 'application/json', bytes: body },
    headers: {
      'user-agent': 'GitHub-Hookshot/044aadd',
      'x-github-event': event,
      'x-github-hook-id': '292430182',
      ...(delivery === null ? {} : { 'x-github-delivery': delivery }),
      'x-hub-signature-256': signatureOf(secret, body),
    },
  };
}

export function fromGitlab(
  secret: string,
  { event = 'Push Hook', delivery = randomUUID(), body = gitlabPush }: WebhookOptions = {},
): CallOptions {
  return {
    raw: { type: 'application/json', bytes: body },
    headers: {
      'user-agent': 'GitLab/18.2.0',
      'x-gitlab-event': event,
      'x-gitlab-instance': 'https://gitlab.example.com',
      // One id for all events that follow from each other, also of several pushes.
      'x-gitlab-event-uuid': '13792a34-cac6-4fda-95a8-c58e00a3954e',
      ...(delivery === null ? {} : { 'idempotency-key': delivery }),
      'x-gitlab-token': secret,
    },
  };
}
