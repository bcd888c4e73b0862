import type { KnownTarget } from '../../features/grants/grants.ts';
import type { HttpRequest } from '../../platform/fast-http/fast-server.ts';
import type { GatewayAnswer } from './answer.ts';

/** Access to private content (private-access.md 2.2): one verdict for each request, in one round trip. */
export type PrivateSteps = {
  /** Whether the request carries a grant for this host, which may have ended; the answer when the store cannot tell. */
  mayHoldGrant(request: HttpRequest, host: string): boolean | Promise<boolean | GatewayAnswer>;
  /** Responds on the paths that are reserved for the service; null for every other path. */
  reserved(request: HttpRequest, at: PrivateAt): Promise<GatewayAnswer> | null;
  authorize(request: HttpRequest, at: PrivateAt): Verdict | Promise<Verdict>;
  /** What tells the grant of a request from others, and whether it is valid now; a check that fails means no. */
  watch(request: HttpRequest, at: PrivateAt): { readonly name: string; holds(): Promise<boolean> };
};

export type Verdict =
  | {
      readonly kind: 'granted';
      /** In milliseconds of the store's clock: the end of the grant, and now. */
      readonly until: number;
      readonly now: number;
    }
  | { readonly kind: 'answer'; readonly answer: GatewayAnswer };

export type PrivateAt = {
  /** Host in the browser's address, including the port. */
  readonly host: string;
  readonly label: string;
  /** Path and query. */
  readonly target: string;
  /** Undefined when the request holds no grant, nothing has this label, or it is not open. The response is the same. */
  readonly known: KnownTarget | undefined;
};

/** Paths of private content with this prefix belong to the service. */
export const reservedPaths = '/.postern/';
