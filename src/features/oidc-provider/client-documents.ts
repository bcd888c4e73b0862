import { type Configuration, errors } from 'oidc-provider';
import { containsKey } from '../../core/key-shape.ts';
import type { Log } from '../../platform/log.ts';
import { DocumentRefused, type ReadDocument } from '../../platform/public-document.ts';
import { metadataOf } from './registration.ts';

/**
 * MCP clients whose id is the https address of their metadata (draft-ietf-oauth-client-id-metadata-document). The library
 * resolves them; this decides which documents it may read, reads them, and passes on only what every MCP client gets.
 */
export type ClientDocuments = {
  /** Whether the MCP policy lets clients of this host use their documents now. */
  allowsHost(host: string): Promise<boolean>;
  /** Whether any host is listed. */
  allowsAny(): Promise<boolean>;
  /** Counts a fetch that this network address caused. Null: a page of an interaction did. */
  mayFetch(address: string | null): Promise<boolean>;
  readonly read: ReadDocument;
};

type Feature = Exclude<
  NonNullable<NonNullable<Configuration['features']>['clientIdMetadataDocument']>,
  boolean
>;

const maxIdLength = 256;
/** Seconds. A changed document, such as one without a stolen redirect, holds within the hour. */
const cacheDuration = { min: 300, max: 3_600 };

export function documentFeature(documents: ClientDocuments): Feature {
  return {
    enabled: true,
    ack: 'draft-02',
    cacheDuration,
    async allowFetch(ctx, clientId) {
      await requireAllowed(documents, clientId);
      // The pages of an interaction look up the client outside the library's requests.
      const address = (ctx as typeof ctx | undefined)?.ip ?? null;
      if (!(await documents.mayFetch(address)))
        throw new errors.InvalidClient('too many metadata documents were requested; try again in a minute');
      return true;
    },
    async allowClient(_ctx, client) {
      // Also of a cached document: the policy may have changed since.
      await requireAllowed(documents, client.clientId);
      return true;
    },
  };
}

async function requireAllowed({ allowsHost }: ClientDocuments, clientId: string): Promise<void> {
  const url = URL.parse(clientId);
  // One spelling for each client, because people and administrators decide by it.
  const isPlain = url?.href === clientId && url.pathname !== '/' && clientId.length <= maxIdLength;
  if (url === null || !isPlain || containsKey(clientId))
    throw new errors.InvalidClient(
      `a client_id that is an address must be normalized, have a path and at most ${maxIdLength} characters`,
    );
  if (!(await allowsHost(url.host)))
    throw new errors.InvalidClient(
      `an administrator must list ${url.host} in clients.metadataHosts of the MCP policy, and open the registration`,
    );
}

/** Takes the place of the library's fetch, which it uses for documents of clients alone. */
export function documentFetch(
  { read }: Pick<ClientDocuments, 'read'>,
  uiOrigin: string,
  log: Log,
): NonNullable<Configuration['fetch']> {
  return async (input, init) => {
    const clientId = input instanceof Request ? input.url : input.toString();
    try {
      const { text, cacheControl } = await read(
        new URL(clientId),
        init?.signal ?? AbortSignal.timeout(2_500),
      );
      const headers = cacheControl === undefined ? {} : { 'cache-control': cacheControl };
      return Response.json(clientIn(text, clientId, uiOrigin), { headers });
    } catch (error) {
      // The library answers that the document could not be fetched; only an administrator needs the reason.
      log.warn({ clientId, reason: reasonOf(error) }, 'the metadata document of an MCP client was refused');
      throw error;
    }
  };
}

function clientIn(text: string, clientId: string, uiOrigin: string) {
  const sent = jsonIn(text);
  // Another client could otherwise have this one's document as its own.
  if (sent?.['client_id'] !== clientId)
    throw new DocumentRefused('does not have its own address as client_id');
  const client = metadataOf(clientId, sent, uiOrigin);
  if ('error' in client) throw new DocumentRefused(`has ${client.error}: ${client.error_description}`);
  return client;
}

function jsonIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    // Any other value has no client_id either.
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    throw new DocumentRefused('is not JSON');
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof DocumentRefused) return `The document ${error.message}.`;
  return error instanceof Error ? error.message : 'unknown';
}
