import { z } from 'zod';
import { cursorQuery } from '../../platform/schemas.ts';
import type { AuditEvent } from './audit-event.ts';
import { chainedForm } from './chain.ts';
import { type AuditEventName, auditEvents } from './events.ts';

/** Example in the API reference. */
export const exampleEvent = {
  id: 'evt_3kTq9ZpW1xYb7LcD5mNa',
  time: '2026-01-01T09:00:00.000Z',
  event: 'api_key.created',
  actor: {
    kind: 'user',
    id: 'usr_8fQ2mV6sT0aXk4RjB1Zc',
    name: 'Ada',
    credential: 'ses_5hJ7nP9rU2cWq3EyG6Ld',
  },
  target: { kind: 'api_key', id: '4fKd02LmQx9Z' },
  outcome: 'success',
  reason: null,
  requestId: '0b8f6c7e-8f0f-4c1a-9f43-3f4dd1f7c9a1',
  address: '192.0.2.7',
  agent: 'Mozilla/5.0',
  details: { name: 'deploy', scopes: ['sites:write'] },
  keyIds: ['4fKd02LmQx9Z'],
  previousHash: null,
  hash: null,
};

/** An event on the wire. `hash` and `previousHash` are null until the event is chained, seconds after it committed. */
export const auditEventResponse = z
  .strictObject({
    id: z.string(),
    time: z.iso.datetime({ precision: 3 }).describe('RFC 3339, UTC, milliseconds'),
    event: z.string().describe('A name from the event reference'),
    actor: z.strictObject({
      kind: z.enum(['user', 'service_key', 'system', 'anonymous']),
      id: z.string().nullable(),
      name: z.string().nullable(),
      credential: z.string().nullable().describe('The public id of the key, session or client that was used'),
    }),
    target: z.strictObject({ kind: z.string(), id: z.string() }),
    outcome: z.enum(['success', 'denied', 'failure']),
    reason: z.string().nullable().describe('An error code or another short word'),
    requestId: z.string().nullable(),
    address: z.string().nullable(),
    agent: z.string().nullable(),
    details: z.record(z.string(), z.unknown()).describe('The state before and after, without secrets'),
    withheld: z
      .array(z.string())
      .describe(
        'Fields of the stored event that this response omits: the name of a site, in an event of a build before 0.1.0. The hash covers them, so only `npm start -- audit verify` can check that event',
      )
      .optional(),
    keyIds: z.array(z.string()).describe('The keys in whose timeline the event appears'),
    previousHash: z.string().nullable(),
    hash: z.string().nullable(),
  })
  .meta({ id: 'AuditEvent', examples: [exampleEvent] });
/** For the administrator's UI. Names are current; the chained event has ids, and neither the export nor the hash has names. */
export const listedEventResponse = auditEventResponse
  .extend({ targetName: z.string().nullable().describe('The name of the person or the key, if it is known') })
  .meta({ id: 'ListedAuditEvent', examples: [{ ...exampleEvent, targetName: 'deploy' }] });

export type AuditEventResponse = z.infer<typeof auditEventResponse>;

export function toAuditEventResponse(event: AuditEvent): AuditEventResponse {
  const { id, time, event: name, actor, target, outcome, details, ...rest } = chainedForm(event);
  const shown = withoutSiteName(event.target.kind, details);
  return {
    id,
    time,
    event: name,
    actor: { ...actor },
    target: { ...target },
    outcome,
    ...rest,
    details: shown.details,
    ...(shown.withheld.length === 0 ? {} : { withheld: shown.withheld }),
    keyIds: [...rest.keyIds],
    previousHash: event.seal?.previousHash ?? null,
    hash: event.seal?.hash ?? null,
  };
}

/**
 * Events written by builds before 0.1.0 contain names of sites, including private ones, and cannot be changed in the chain.
 * Every answer leaves these names out (decision 0038).
 */
function withoutSiteName(targetKind: string, details: AuditEvent['details']) {
  const shown: Record<string, unknown> = { ...details };
  const withheld: string[] = [];
  if (targetKind !== 'site') return { details: shown, withheld };
  for (const part of ['before', 'after']) {
    const facts = shown[part];
    if (typeof facts !== 'object' || facts === null || !('name' in facts)) continue;
    const { name: _withheld, ...others } = facts;
    shown[part] = others;
    withheld.push(`details.${part}.name`);
  }
  return { details: shown, withheld };
}

const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const word = z.string().min(1).max(200);

// Object.keys() loses the type of the table: every key is an event name, and there is at least one.
const eventNames = Object.keys(auditEvents) as [AuditEventName, ...AuditEventName[]];

const filters = {
  actor: word.describe('An actor’s id, or `anonymous` or `system`').optional(),
  event: z.enum(eventNames).optional(),
  target: word.describe('A target’s id').optional(),
  outcome: z.enum(['success', 'denied', 'failure']).optional(),
  requestId: word.optional(),
  keyId: word.describe('Events of one key').optional(),
  from: instant.describe('RFC 3339; events at or after this time').optional(),
  to: instant.describe('RFC 3339; events before this time').optional(),
};

export const searchQuery = z.strictObject({ ...filters, ...cursorQuery });
export const exportQuery = z.strictObject({
  ...filters,
  format: z.enum(['ndjson', 'csv']).default('ndjson'),
});

/**
 * The event for a viewer who may know that it happened, but not from where: it leaves out the address, agent and session of
 * other people. So an owner's timeline shows what an administrator did, but not from where. Only administrators read why an
 * ID token was refused: anyone can send one for any key.
 */
export function toTimelineResponse(event: AuditEvent, viewerId: string): AuditEventResponse {
  const response = toAuditEventResponse(event);
  if (event.event === 'api_key.exchange_refused') return { ...response, reason: null };
  if (response.actor.kind !== 'user' || response.actor.id === viewerId) return response;
  return { ...response, actor: { ...response.actor, credential: null }, address: null, agent: null };
}
