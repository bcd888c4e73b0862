/**
 * The closed list of error codes (contract 2). Every failure response has one of these; `docs/reference/errors.md` and
 * the OpenAPI responses are generated from this table.
 */
export const errorRegistry = {
  invalid_body: [
    400,
    'The request body is not valid.',
    'Compare the body with the schema in the API reference.',
  ],
  invalid_query: [400, 'A query or path parameter is not valid.', 'Remove or correct the named parameter.'],
  invalid_name: [
    400,
    'The name is not valid.',
    'Send 1 to 100 characters after trimming, without control characters.',
  ],
  invalid_scopes: [400, 'The scopes are not valid.', 'Send a non-empty list of distinct scope names.'],
  invalid_expiry: [
    400,
    'The lifetime is not valid.',
    'Send either ttlHours or a future expiresAt (RFC 3339 with a zone), or neither.',
  ],
  invalid_repository_access: [
    400,
    'The repository selection is not valid.',
    'Send {"mode":"all"} or {"mode":"selected","repositories":[…]} with 1 to 50 names.',
  ],
  invalid_trust_rule: [
    400,
    'The trust rule is not valid.',
    'Name an issuer of the key policy, and the claims that its preset requires, each with its text.',
  ],
  invalid_passkey: [
    400,
    'The passkey could not be verified.',
    'Try again, or use another authenticator that verifies the person by a PIN, a fingerprint or a face.',
  ],
  repo_not_found: [
    400,
    'A named repository is not registered.',
    'Register the repository first, or correct its name.',
  ],
  invalid_repository: [
    400,
    'The repository cannot be read with its clone URL and credential.',
    'Correct the clone URL or the credential of the repository.',
  ],
  invalid_branch: [400, 'The repository has no such branch.', 'Choose one of its branches.'],
  mine_requires_identity: [
    400,
    'mine=true needs to know who you are, and this key names nobody.',
    'Leave mine out, or use a key that is bound to a person.',
  ],
  credential_in_url: [
    400,
    'A key-shaped value was sent in the URL.',
    'Send keys in the Authorization header only. Treat this key as exposed: replace and revoke it.',
  ],
  ambiguous_credential: [
    400,
    'The request carries more than one credential.',
    'Send exactly one: the session cookie or one Authorization header.',
  ],
  authentication_required: [
    401,
    'This route needs a credential.',
    'Send "Authorization: Bearer <key>", or sign in.',
  ],
  invalid_credential: [
    401,
    'The credential is not valid.',
    'Send it as "Authorization: Bearer <key>". If you did, it is mistyped, revoked or expired: create a new one.',
  ],
  interactive_auth_required: [
    403,
    'This route does not accept this kind of credential.',
    'Sign in to the web app and make the request there.',
  ],
  fresh_authentication_required: [
    403,
    'You signed in too long ago for this request.',
    'Sign in again at the address in details.url, in the browser, and repeat the request.',
  ],
  forbidden_role: [403, 'Your account lacks the role that this request needs.', 'Ask an administrator.'],
  forbidden_scope: [
    403,
    'The key or token lacks a scope that this request needs.',
    'Use a key that has the scope in details.requiredScope.',
  ],
  forbidden_repository: [
    403,
    'The key is not allowed to use this repository.',
    'Use a key whose repository selection includes it.',
  ],
  forbidden_origin: [
    403,
    'The request did not come from the web app.',
    'Send the header Origin with the origin of SERVICE_UI_URL, as a browser does on the web app’s own pages.',
  ],
  api_keys_disabled: [
    403,
    'Keys of this type are switched off.',
    'Ask an administrator about the API key policy.',
  ],
  issuance_disabled: [
    403,
    'Creating keys of this type is switched off.',
    'Ask an administrator about the API key policy.',
  ],
  identity_binding_required: [
    403,
    'This older key is not bound to a user and cannot use Sites.',
    'Sign in and create a replacement key.',
  ],
  service_key_public_only: [
    403,
    'Service keys can own public sites only.',
    'Upload with visibility "public", or use a personal key.',
  ],
  not_owner: [403, 'Only the owner may change this.', 'Ask the owner to make the change.'],
  sites_disabled: [403, 'Sites is switched off.', 'Ask an administrator to switch Sites on.'],
  environments_disabled: [
    403,
    'Environments are switched off.',
    'Ask an administrator to switch Environments on.',
  ],
  tool_hidden: [
    403,
    'An administrator does not let agents use this tool.',
    'Read tools/list for the tools that you may use, or ask an administrator about the MCP policy.',
  ],
  client_not_allowed: [
    403,
    'An administrator does not let this client use Postern.',
    'Ask an administrator to allow the client.',
  ],
  approval_required: [
    403,
    'This call waits for the approval of the person.',
    'Ask the person to open the page in details.url. Then make the same call again, within ten minutes.',
  ],
  approval_refused: [
    403,
    'The person refused this call.',
    'Do not repeat it. Ask the person what to do instead.',
  ],
  connection_broken: [
    403,
    'The external MCP server no longer accepts the account of the person.',
    'Ask the person to connect it again, in Settings, Agents, MCP connections.',
  ],
  user_disabled: [
    403,
    'The account of this credential is disabled, or may not use this service.',
    'Ask an administrator to enable the account or give it the role user.',
  ],
  role_required: [
    403,
    'The account lacks the role user, which this service requires.',
    'Ask an administrator for the role user.',
  ],
  not_found: [
    404,
    'This resource does not exist.',
    'Compare the path with the API reference, and check the id.',
  ],
  token_not_found: [404, 'There is no such key.', 'List your keys to see their ids.'],
  site_not_found: [404, 'There is no such site.', 'List your sites to see their ids.'],
  env_not_found: [404, 'There is no such environment.', 'List environments to see their ids.'],
  build_not_found: [404, 'There is no such build.', 'List builds to see their ids.'],
  repo_not_onboarded: [404, 'There is no such repository.', 'List repositories to see the registered ones.'],
  method_not_allowed: [
    405,
    'This path does not support this method.',
    'Use one of the methods in the Allow header.',
  ],
  request_timeout: [408, 'The request took too long to arrive.', 'Send the request again.'],
  name_conflict: [409, 'The name is taken.', 'Choose another name.'],
  personal_token_limit: [
    409,
    'You already have the maximum number of active keys.',
    'Revoke a key you no longer need, then try again.',
  ],
  idempotency_conflict: [
    409,
    'This idempotency key was already used with a different body.',
    'Use a new idempotency key.',
  ],
  state_conflict: [
    409,
    'The current state does not allow this.',
    'Read the resource again before you retry.',
  ],
  deploy_disabled: [409, 'Deploys of this environment are paused.', 'Set deployEnabled to true first.'],
  env_tearing_down: [409, 'The environment is being torn down.', 'Create another environment of the branch.'],
  expiry_conflict: [409, 'The site does not expire.', 'There is no expiry to extend.'],
  site_expired: [
    410,
    'The site has expired.',
    'Extend it first. Its content is kept for some days after the expiry.',
  ],
  precondition_failed: [
    412,
    'The document changed since you read it.',
    'Read it again, apply your change, and send the new ETag in If-Match.',
  ],
  upload_too_large: [
    413,
    'The upload is larger than allowed.',
    'Read the limits at /api/v2/sites/capabilities.',
  ],
  body_too_large: [
    413,
    'The request body is larger than allowed.',
    'The API reference states the size for each request; where it states none, it is 64 KiB.',
  ],
  unsupported_media_type: [
    415,
    'This route does not accept this content type.',
    'Send "Content-Type: application/json".',
  ],
  misdirected_request: [
    421,
    'This server does not serve this host.',
    'Use the address that the administrator gave you.',
  ],
  expiry_required: [422, 'The policy does not allow keys without expiry.', 'Send ttlHours or expiresAt.'],
  lifetime_too_long: [
    422,
    'The lifetime is longer than the policy allows.',
    'Send at most the lifetime in details.maxTtlHours.',
  ],
  override_not_allowed: [
    422,
    'This value cannot be chosen here.',
    'Leave it out, or ask an administrator about the Environment policy.',
  ],
  auto_track_pinned_source: [
    422,
    'An environment that is pinned to a commit cannot follow its branch.',
    'Leave out sha, or set autoTrack to false.',
  ],
  scope_not_allowed: [
    422,
    'The policy does not allow one of the scopes.',
    'Use scopes that the policy allows. An edit can only narrow the scopes.',
  ],
  repository_policy: [
    422,
    'The policy does not allow this repository selection.',
    'Use a selection that the policy allows. An edit can only narrow the selection.',
  ],
  upload_rejected: [422, 'The upload was refused.', 'Fix every file in details and upload again.'],
  credential_in_content: [
    422,
    'The upload contains an API key.',
    'Revoke the key, remove it from the files, and upload again.',
  ],
  private_sites_unavailable: [
    422,
    'Private sites are not available on this installation.',
    'Ask an administrator; the reason is in details.',
  ],
  visibility_not_allowed: [
    422,
    'This visibility is not allowed.',
    'Read the allowed visibilities at /api/v2/sites/capabilities.',
  ],
  quota_exceeded: [422, 'A quota is used up.', 'Delete what you no longer need, or ask an administrator.'],
  config_invalid: [422, 'The configuration document is not valid.', 'Fix every field in details.'],
  precondition_required: [
    428,
    'This change needs an If-Match header.',
    'Read the document and send its ETag in If-Match.',
  ],
  rate_limited: [429, 'Too many requests.', 'Wait the number of seconds in Retry-After, then try again.'],
  header_too_large: [431, 'The request headers are too large.', 'Send at most 16 KiB of headers.'],
  internal_error: [
    500,
    'Something went wrong on the server.',
    'Try again. If the error persists, give an administrator the request id.',
  ],
  identity_unavailable: [
    503,
    'Postern could not check in time who makes the request.',
    'Wait the number of seconds in Retry-After, then try again. If it persists, an administrator checks the identity provider, or the database where Postern itself is the provider.',
  ],
  git_unavailable: [
    503,
    'The git server of the repository cannot be reached right now.',
    'Wait the number of seconds in Retry-After, then try again.',
  ],
  engine_unavailable: [
    503,
    'The engine that builds and runs Environments cannot be used right now.',
    'Try again later. If the error persists, an administrator finds the reason in the log.',
  ],
  external_server_unavailable: [
    503,
    'The external MCP server cannot be used right now.',
    'Try again later. If the error persists, ask an administrator about this server.',
  ],
  overloaded: [
    503,
    'The server is overloaded.',
    'Wait the number of seconds in Retry-After, then try again.',
  ],
  storage_full: [
    507,
    'The server has no storage space left for the upload.',
    'Nothing was changed. Ask an administrator to free space, then upload again.',
  ],
  store_unavailable: [
    503,
    'A store that this request needs cannot be reached right now.',
    'Wait the number of seconds in Retry-After, then try again.',
  ],
} as const satisfies Record<string, readonly [status: number, message: string, hint: string]>;

export type ErrorCode = keyof typeof errorRegistry;

export const errorCodes = Object.keys(errorRegistry) as ErrorCode[];

export function statusOf(code: ErrorCode): number {
  return errorRegistry[code][0];
}

export type ErrorDetails = Readonly<Record<string, unknown>>;

type AppErrorOptions = {
  /** Replaces the registry's sentence. For the user: never a secret, never SQL, never a path. */
  message?: string;
  hint?: string;
  details?: ErrorDetails;
  /** Whole seconds, at least 1; sent as Retry-After. */
  retryAfterSeconds?: number;
  headers?: Readonly<Record<string, string>>;
  /** Appears only in the log. */
  cause?: unknown;
};

/** People read the hint without the header that it names. */
function withSeconds(hint: string, seconds: number | undefined): string {
  if (seconds === undefined) return hint;
  return hint.replace(
    'the number of seconds in Retry-After',
    seconds === 1 ? '1 second' : `${seconds} seconds`,
  );
}

/** A refusal with a code from the registry. Commands throw it; one translator turns it into an HTTP response. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly hint: string;
  readonly details: ErrorDetails | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    const [status, message, hint] = errorRegistry[code];
    // A client's mistake needs no stack trace, and capturing one costs more than the whole refusal of a bad key.
    const { stackTraceLimit } = Error;
    if (status < 500) Error.stackTraceLimit = 0;
    super(options.message ?? message, options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'AppError';
    this.code = code;
    this.status = status;
    this.details = options.details;
    const retryAfter = options.retryAfterSeconds ?? (status === 503 ? 5 : undefined);
    const seconds = retryAfter === undefined ? undefined : Math.max(1, Math.ceil(retryAfter));
    this.hint = withSeconds(options.hint ?? hint, seconds);
    this.headers =
      seconds === undefined
        ? (options.headers ?? {})
        : { ...options.headers, 'retry-after': String(seconds) };
  }
}
