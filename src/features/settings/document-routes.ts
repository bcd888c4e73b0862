import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import type { Caller } from '../../core/caller.ts';
import type { ErrorCode } from '../../core/errors.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { pageQuery, queryFlag } from '../../platform/schemas.ts';
import type { ConfigDocument, InForce, Judge } from './document.ts';

/** An administrator’s access token may change a document too, with the OAuth scope `admin` (contract 10.15). */
export const byAdministrators: RoutePolicy = {
  callers: ['session', 'access_token'],
  role: 'admin',
  tokenScope: 'admin',
  identity: 'introspected',
};

type DocumentRoutesSpec<T extends object, Shown extends object, Impact> = {
  /** The path below `/config`. */
  readonly path: string;
  /** The name in operation ids: `SitesConfig` gives `readSitesConfig` and the other operations. */
  readonly operation: string;
  readonly tag: string;
  /** The name of the document in texts, as in "Read the Sites configuration". */
  readonly title: { readonly one: string; readonly many: string };
  readonly policy: RoutePolicy;
  readonly changeDescription: string;
  /** Error codes of a change and of a revert, besides those of every document. */
  readonly errors?: readonly ErrorCode[];
  /** A section that the body omits stays as it is. */
  readonly body: z.ZodObject & z.ZodType<{ [Field in keyof T]?: T[Field] | undefined }>;
  readonly shown: z.ZodType<Shown>;
  readonly change: z.ZodType<Shown & { dryRun: Impact | null }>;
  readonly example: { readonly body: T; readonly data: object };
  readonly document: Pick<ConfigDocument<T>, 'read' | 'history' | 'revert' | 'put'>;
  /** Whether a change allows more, and so needs a fresh sign-in. Absent: no change needs one. */
  readonly widens?: (before: T, after: T) => boolean;
  /** Refuses what this caller cannot change, also in a dry run. Absent: nothing more than the schema. */
  readonly judge?: (caller: Caller) => Promise<Judge<T>>;
  /** What a change would do now. Throws unless `ifMatch` names the newest version. */
  dryRun(ifMatch: string | undefined, next: T): Promise<{ current: InForce<T>; impact: Impact }>;
  toShown(document: InForce<T>): Shown;
};

/** The four routes of a configuration document: read, change with If-Match and dry run, history, revert (contract 2). */
export function documentRoutes<T extends object, Shown extends object, Impact>(
  spec: DocumentRoutesSpec<T, Shown, Impact>,
): Route[] {
  const { operation, tag, title, document, example, toShown, errors = [] } = spec;
  const { policy, widens } = spec;
  const changing: RoutePolicy = widens === undefined ? policy : { ...policy, freshProof: 'sometimes' };
  const judgedBy = async (caller: Caller, staleProof: () => Promise<Error | null>): Promise<Judge<T>> => {
    const stale = widens === undefined ? null : await staleProof();
    const judge = await spec.judge?.(caller);
    return (before, after) => {
      if (stale !== null && widens?.(before, after) === true) throw stale;
      judge?.(before, after);
    };
  };
  // Parsed JSON has no field that is undefined.
  const onto = (before: T, body: object) => ({ ...before, ...body }) as T;
  const path = `/config/${spec.path}`;
  const success = { status: 200, data: spec.shown, etag: true } as const;
  const withEtag = (one: InForce<T>) => ({ data: toShown(one), headers: { etag: one.etag } });
  return [
    defineRoute({
      method: 'GET',
      path,
      operationId: `read${operation}`,
      tag,
      summary: `Read the ${title.one}`,
      description: 'Send the ETag of the response in If-Match when you change the document.',
      policy,
      success,
      example: { data: example.data },
      async handle() {
        return withEtag(await document.read());
      },
    }),
    defineRoute({
      method: 'PUT',
      path,
      operationId: `change${operation}`,
      tag,
      summary: `Change the ${title.one}`,
      description: spec.changeDescription,
      policy: changing,
      query: z.strictObject({ dryRun: queryFlag.default(false) }),
      body: spec.body,
      fieldCodes: Object.fromEntries(
        Object.keys(spec.body.shape).map((field) => [field, 'config_invalid' as const]),
      ),
      errors: ['precondition_required', 'precondition_failed', ...errors],
      success: { status: 200, data: spec.change, etag: true },
      example: { body: example.body, data: { ...example.data, dryRun: null } },
      async handle({ auditContext, caller, body, query, header, staleProof }) {
        if (query.dryRun) {
          const next = onto((await document.read()).value, body);
          const { current, impact } = await spec.dryRun(header('if-match'), next);
          (await spec.judge?.(caller))?.(current.value, next);
          const data = { ...toShown({ ...current, value: next }), dryRun: impact };
          return { data, headers: { etag: current.etag } };
        }
        const next = (before: T) => onto(before, body);
        const judge = await judgedBy(caller, staleProof);
        const { data, headers } = withEtag(await document.put(auditContext, header('if-match'), next, judge));
        return { data: { ...data, dryRun: null }, headers };
      },
    }),
    defineRoute({
      method: 'GET',
      path: `${path}/history`,
      operationId: `read${operation}History`,
      tag,
      summary: `Read earlier ${title.many}`,
      description:
        'Newest first. The last one is version 0, the built-in default. You can also revert to it.',
      policy,
      query: z.strictObject(pageQuery),
      success: { status: 200, data: z.array(spec.shown), pagination: 'page' },
      example: { data: [example.data] },
      async handle({ query: { page, limit } }) {
        const { items, total } = await document.history(page, limit);
        return { data: items.map(toShown), pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: `${path}/revert`,
      operationId: `revert${operation}`,
      tag,
      summary: `Restore an earlier ${title.one}`,
      description: 'Writes the earlier document as a new version.',
      policy: changing,
      body: z.strictObject({ version: z.number().int().min(0).max(1_000_000_000) }),
      errors: ['not_found', 'precondition_required', 'precondition_failed', ...errors],
      success,
      example: { body: { version: 0 }, data: { ...example.data, version: 2 } },
      async handle({ auditContext, caller, body, header, staleProof }) {
        const judge = await judgedBy(caller, staleProof);
        return withEtag(await document.revert(auditContext, header('if-match'), body.version, judge));
      },
    }),
  ];
}
