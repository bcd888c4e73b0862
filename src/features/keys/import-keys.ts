import { z } from 'zod';
import { systemAct, type UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { type Random, randomBase62 } from '../../core/ids.ts';
import { allScopes } from '../../core/scopes.ts';
import { isUniqueViolation, type Tx } from '../../platform/database/database.ts';
import { plainText } from '../../platform/schemas.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { Repository } from '../repositories/repositories.ts';
import type { KeyStore } from './key-store.ts';

/**
 * `postern keys import FILE`: records of an older deployment, one JSON object a line (contract 4). Values are not
 * known, only their SHA-256; ids are minted. The one way that env:admin and unbound personal keys come to be.
 * All or nothing: a line that cannot be taken refuses the file and names itself.
 */
const recordSchema = z
  .strictObject({
    digest: z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hexadecimal'),
    prefix: z.string().regex(/^[a-z][a-z0-9]{0,15}_(?:pat|svc)_$/, 'must be a key prefix such as app_pat_'),
    name: plainText(100),
    scopes: z.array(z.enum(allScopes)).min(1),
    owner: z
      .string()
      .min(1)
      .max(255)
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

type ImportRecord = z.infer<typeof recordSchema>;

export type ImportResult =
  | { readonly kind: 'imported'; readonly count: number; readonly alreadyThere: number }
  | { readonly kind: 'refused'; readonly problems: readonly { line: number; problem: string }[] };

export function createKeyImport(deps: {
  tx: Tx<{
    keys: KeyStore;
    audit: AuditWriter;
    repositories: { findAll(names: readonly string[]): Promise<Repository[]> };
  }>;
  /** Product word of this installation's prefixes (KEY_PREFIX): a record of another one could never be used. */
  product: string;
  /** A person by the configured issuer's subject; created when not known yet. */
  userOfSubject: (subject: string) => Promise<UserRef>;
  clock: Clock;
  random: Random;
}) {
  const { tx, product, userOfSubject, clock, random } = deps;

  return async function importKeys(lines: readonly string[]): Promise<ImportResult> {
    const { records, problems } = parseLines(lines);
    for (const { line, record } of records) {
      if (record.prefix.startsWith(`${product}_`)) continue;
      problems.push({
        line,
        problem: `prefix: keys of this installation begin with ${product}_ (KEY_PREFIX)`,
      });
    }
    problems.sort((one, other) => one.line - other.line);
    if (problems.length > 0) return { kind: 'refused', problems };
    const owners = new Map<string, string>();
    for (const { record } of records) {
      if (record.owner) owners.set(record.owner, (await userOfSubject(record.owner)).id);
    }
    let alreadyThere = 0;
    try {
      await tx(async (stores) => {
        for (const { line, record } of records) {
          if (await stores.keys.findByDigest(record.digest)) {
            alreadyThere += 1;
            continue;
          }
          await importOne(stores, line, record, record.owner ? (owners.get(record.owner) ?? null) : null);
        }
      });
    } catch (error) {
      if (error instanceof RefusedLine)
        return { kind: 'refused', problems: [{ line: error.line, problem: error.message }] };
      if (isUniqueViolation(error))
        return { kind: 'refused', problems: [{ line: 0, problem: 'a digest appears twice' }] };
      throw error;
    }
    return { kind: 'imported', count: records.length - alreadyThere, alreadyThere };
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
      act: systemAct,
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

function parseLines(lines: readonly string[]) {
  const records: { line: number; record: ImportRecord }[] = [];
  const problems: { line: number; problem: string }[] = [];
  for (const [index, text] of lines.entries()) {
    if (text.trim() === '') continue;
    const line = index + 1;
    const result = recordSchema.safeParse(parseJson(text));
    if (result.success) records.push({ line, record: result.data });
    else {
      const issue = result.error.issues[0];
      problems.push({
        line,
        problem: `${issue?.path.join('.') || 'line'}: ${issue?.message ?? 'is not a JSON object'}`,
      });
    }
  }
  return { records, problems };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
