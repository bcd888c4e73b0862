import type { AuditEvent } from './audit.ts';
import { type AuditEventResponse, toAuditEventResponse } from './schemas.ts';

/** The two forms of an export: NDJSON to verify and to load elsewhere, CSV to read in a spreadsheet. */
export type ExportFormat = 'ndjson' | 'csv';

export const exportTypes: Record<ExportFormat, string> = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

/** Writes pages of events as text, one chunk a page, one line an event. */
export async function* writeExport(
  pages: AsyncIterable<readonly AuditEvent[]>,
  format: ExportFormat,
): AsyncGenerator<string> {
  if (format === 'csv') yield `${csvColumns.map(([name]) => name).join(',')}\r\n`;
  const line = format === 'csv' ? csvLine : jsonLine;
  for await (const events of pages) {
    if (events.length > 0) yield events.map((event) => line(toAuditEventResponse(event))).join('');
  }
}

function jsonLine(event: AuditEventResponse): string {
  return `${JSON.stringify(event)}\n`;
}

/** RFC 4180. Line breaks cannot occur, because safe-text.ts escapes them in every event. */
function csvLine(event: AuditEventResponse): string {
  return `${csvColumns.map(([, read]) => csvCell(read(event) ?? '')).join(',')}\r\n`;
}

/**
 * Spreadsheets execute a cell that begins like a formula, some also with full-width characters. A leading apostrophe makes
 * it text (OWASP, CSV injection).
 */
function csvCell(text: string): string {
  const cell = /^[\s\p{Cf}]*[=+\-@\t\r＝＋－＠]/u.test(text) ? `'${text}` : text;
  return /[",\r\n;]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

const csvColumns: readonly (readonly [string, (event: AuditEventResponse) => string | null])[] = [
  ['id', (event) => event.id],
  ['time', (event) => event.time],
  ['event', (event) => event.event],
  ['actorKind', (event) => event.actor.kind],
  ['actorId', (event) => event.actor.id],
  ['actorName', (event) => event.actor.name],
  ['credential', (event) => event.actor.credential],
  ['targetKind', (event) => event.target.kind],
  ['targetId', (event) => event.target.id],
  ['outcome', (event) => event.outcome],
  ['reason', (event) => event.reason],
  ['requestId', (event) => event.requestId],
  ['address', (event) => event.address],
  ['agent', (event) => event.agent],
  ['details', (event) => JSON.stringify(event.details)],
  ['keyIds', (event) => event.keyIds.join(' ')],
  ['previousHash', (event) => event.previousHash],
  ['hash', (event) => event.hash],
];
