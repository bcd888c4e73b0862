import { createHash } from 'node:crypto';
import { timestamp } from '../../core/clock.ts';
import type { AuditEvent } from './audit-event.ts';

/**
 * The algorithm of the chain; docs/reference/audit-chain.md documents it for people who verify an export with their
 * own tools. Any change here breaks every existing chain.
 */

/** The previous hash of the first event: 32 zero bytes in hex. */
export const genesisHash = '0'.repeat(64);

/** The event as the API returns it, without its two hashes: exactly what the hash covers. */
export function chainedForm(event: AuditEvent) {
  return {
    id: event.id,
    time: timestamp(event.at),
    event: event.event,
    actor: event.actor,
    target: event.target,
    outcome: event.outcome,
    reason: event.reason,
    requestId: event.requestId,
    address: event.address,
    agent: event.agent,
    details: event.details,
    keyIds: event.keyIds,
  };
}

/** SHA-256 in hex over the previous hash in hex, a line feed, and the event in canonical JSON, as UTF-8. */
export function chainHash(previousHash: string, event: AuditEvent): string {
  return createHash('sha256')
    .update(`${previousHash}\n${canonicalJson(chainedForm(event))}`)
    .digest('hex');
}

/** RFC 8785: no white space, members sorted by UTF-16 code units, numbers and strings as ECMAScript writes them. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}
