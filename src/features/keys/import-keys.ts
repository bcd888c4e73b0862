import { z } from 'zod';
import { systemAuditContext, type UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { type Random, randomBase62 } from '../../core/ids.ts';
import { allScopes } from '../../core/scopes.ts';
import { isUniqueViolation, type Tx } from '../../platform/database/database.ts';
import { inputWordsWith } from '../../platform/input-words.ts';
import { plainText } from '../../platform/schemas.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { Repository } from '../repositories/repositories.ts';
import type { KeyStore } from './key-store.ts';

/**
 * `npm start -- keys import FILE`: imports the records of an older deployment, one JSON object a line (contract 4). The file
 * has no key values, only their SHA-256; the import generates the ids. Only an import can create keys with env:admin and
 * unbound personal keys. All or nothing: one invalid line refuses the file, and the answer lists every problem of every line.
 */
const recordSchema = (product: string) =>
  z
    .strictObject({
      digest: z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hexadecimal'),
      prefix: z
        .string()
        .regex(/^[a-z][a-z0-9]{0,15}_(?:pat|svc)_$/, {
          message: 'must be a key prefix such as app_pat_',
          abort: true,
        })
        // A key with another product word in its prefix would never verify here.
        .startsWith(`${product}_`, `keys of this installation begin with ${product}_ (KEY_PREFIX)`),
      name: plainText(100),
      scopes: z.array(z.enum(allScopes)).min(1),
      owner: z
        .string()
        .min(1)
        .max(255)
        .refine(
          (owner) => !/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(owner),
          'must be the subject at the identity provider, not an e-mail address',
        )
        .nullable()
        .optional()
        .describe('The owner’s subject at the identity provider, or none'),
      repositories: z.array(z.string().max(201)).min(1).max(50).nullable().optional().describe('null = all'),
      createdAt: z.iso.datetime({ offset: true }),
      expiresAt: z.iso.datetime({ offset: true }).nullable(),
      revokedAt: z.iso.datetime({ offset: true }).nullable().optional(),
    })
    .refine((record) => !(record.prefix.includes('_svc_') && record.owner), {
      path: ['owner'],
      message: 'service keys have no owner',
    })
    .refine(
      (record) => record.expiresAt === null || Date.parse(record.expiresAt) > Date.parse(record.createdAt),
      {
        path: ['expiresAt'],
        message: 'must be later than createdAt',
      },
    )
    .refine((record) => record.prefix.includes('_svc_') || !record.scopes.includes('env:admin'), {
      path: ['scopes'],
      message: 'env:admin is for service keys only',
    });

type RecordSchema = ReturnType<typeof recordSchema>;
type ImportRecord = z.infer<RecordSchema>;
type Problem = { readonly line: number; readonly problem: string };

export type ImportResult =
  | {
      readonly kind: 'imported';
      readonly count: number;
      readonly alreadyThere: number;
      /** Each owner that the file names, once, with the first line that names it. Some may have no account here. */
      readonly owners: readonly { readonly line: number; readonly subject: string }[];
    }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] };

export function createKeyImport(deps: {
  tx: Tx<{
    keys: KeyStore;
    audit: AuditWriter;
    repositories: { findAll(names: readonly string[]): Promise<Repository[]> };
  }>;
  /** Product word of this installation's prefixes (KEY_PREFIX): a key with another one would never verify. */
  product: string;
  /** Finds a user by the configured issuer's subject; creates the user when this installation has none yet. */
  userOfSubject: (subject: string) => Promise<UserRef>;
  clock: Clock;
  random: Random;
}) {
  const { tx, product, userOfSubject, clock, random } = deps;

  const schema = recordSchema(product);

  return async function importKeys(lines: readonly string[]): Promise<ImportResult> {
    const { records, problems } = parseLines(schema, lines);
    if (problems.length > 0) return { kind: 'refused', problems };
    const owners = new Map<string, { line: number; userId: string }>();
    for (const { line, record } of records) {
      if (!record.owner || owners.has(record.owner)) continue;
      owners.set(record.owner, { line, userId: (await userOfSubject(record.owner)).id });
    }
    let alreadyThere = 0;
    try {
      await tx(async (stores) => {
        for (const { line, record } of records) {
          // A value that was erased for ever must not come back with a repeated import.
          const isKnown =
            (await stores.keys.findByDigest(record.digest)) !== undefined ||
            (await stores.keys.isErasedImport(record.digest));
          if (isKnown) {
            alreadyThere += 1;
            continue;
          }
          const owner = record.owner ? owners.get(record.owner) : undefined;
          await importOne(stores, line, record, owner?.userId ?? null);
        }
      });
    } catch (error) {
      if (error instanceof RefusedLine)
        return { kind: 'refused', problems: [{ line: error.line, problem: error.message }] };
      if (isUniqueViolation(error))
        return { kind: 'refused', problems: [{ line: 0, problem: 'a digest appears twice' }] };
      throw error;
    }
    return {
      kind: 'imported',
      count: records.length - alreadyThere,
      alreadyThere,
      owners: [...owners].map(([subject, { line }]) => ({ line, subject })),
    };
  };

  async function importOne(
    stores: {
      keys: KeyStore;
      audit: AuditWriter;
      repositories: { findAll(names: readonly string[]): Promise<Repository[]> };
    },
    line: number,
    record: ImportRecord,
    ownerUserId: string | null,
  ): Promise<void> {
    const names = record.repositories ?? null;
    const found = names === null ? [] : await stores.repositories.findAll(names);
    const known = new Set(found.map(({ fullName }) => fullName.toLowerCase()));
    const missing = names?.find((name) => !known.has(name.toLowerCase()));
    if (missing !== undefined) throw new RefusedLine(line, `repositories: ${missing} is not registered`);
    const id = randomBase62(random, 12);
    const createdAt = Date.parse(record.createdAt);
    const expiresAt = record.expiresAt === null ? null : Date.parse(record.expiresAt);
    await stores.keys.insert({
      id,
      digest: record.digest,
      type: record.prefix.includes('_svc_') ? 'service' : 'personal',
      name: record.name,
      scopes: record.scopes,
      repositoryIds: names === null ? 'all' : found.map((repository) => repository.id),
      ownerUserId,
      createdAt,
      createdBy: null,
      lifetimeMs: expiresAt === null ? null : expiresAt - createdAt,
      expiresAt,
      replaces: null,
      importedAt: clock.now(),
    });
    if (record.revokedAt) await stores.keys.revoke(id, Date.parse(record.revokedAt), null, 'administrator');
    await stores.audit.append({
      event: 'api_key.imported',
      auditContext: systemAuditContext,
      target: { kind: 'api_key', id },
      outcome: 'success',
      details: { name: record.name, scopes: record.scopes, owner: ownerUserId, expiresAt: record.expiresAt },
      keyIds: [id],
    });
  }
}

class RefusedLine extends Error {
  readonly line: number;
  constructor(line: number, problem: string) {
    super(problem);
    this.line = line;
  }
}

function parseLines(schema: RecordSchema, lines: readonly string[]) {
  const records: { line: number; record: ImportRecord }[] = [];
  const problems: Problem[] = [];
  for (const [index, text] of lines.entries()) {
    if (text.trim() === '') continue;
    const line = index + 1;
    const value = parseJson(text);
    if (value === undefined) {
      problems.push({ line, problem: 'line: must be one JSON object' });
      continue;
    }
    const result = schema.safeParse(value, { error: inOurWords });
    if (result.success) records.push({ line, record: result.data });
    else problems.push(...result.error.issues.flatMap(problemsOf).map((problem) => ({ line, problem })));
  }
  return { records, problems };
}

const inOurWords = inputWordsWith('is not a field of a record');

/** One problem for most refusals; one for each of several unknown fields. */
function problemsOf(issue: z.core.$ZodIssue): string[] {
  const names = issue.code === 'unrecognized_keys' ? issue.keys : [issue.path.join('.') || 'line'];
  return names.map((name) => `${name}: ${issue.message}`);
}

/** Undefined when the text is not JSON; no JSON text parses to undefined. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
