import { type Random, randomFrom } from '../../../core/ids.ts';
import type { Visibility } from './site.ts';

/**
 * Labels come in front of the content host: one DNS level and 85 random bits. The first letters alone distinguish
 * public from private (private-access.md 2.1). Unused public addresses respond with 404; all private addresses
 * respond alike.
 */
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
const length = 17;
const privatePrefix = 'p-';
const shape = /^(?:p-)?[a-z2-7]{17}$/;

export function generateLabel(random: Random, visibility: Visibility): string {
  const text = randomFrom(random, alphabet, length);
  return visibility === 'private' ? privatePrefix + text : text;
}

/** Undefined for text that does not have the shape of a label. */
export function visibilityOfLabel(label: string): Visibility | undefined {
  if (!shape.test(label)) return undefined;
  return label.startsWith(privatePrefix) ? 'private' : 'public';
}

/** 10 of a–z and 0–9 (contract 6). */
export function generateSiteId(random: Random): string {
  return randomFrom(random, 'abcdefghijklmnopqrstuvwxyz0123456789', 10);
}
