import { type Random, randomFrom } from '../../core/ids.ts';
import type { Visibility } from './site.ts';

/**
 * Labels stand in front of the content host: one DNS level, 85 random bits, told apart by their first letters alone
 * (private-access.md 2.1). Public addresses answer 404 for what is not there; private ones answer all alike.
 */
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
const length = 17;
const privatePrefix = 'p-';
const shape = /^(?:p-)?[a-z2-7]{17}$/;

export function mintLabel(random: Random, visibility: Visibility): string {
  const text = randomFrom(random, alphabet, length);
  return visibility === 'private' ? privatePrefix + text : text;
}

/** Undefined for what no label of ours looks like. */
export function visibilityOfLabel(label: string): Visibility | undefined {
  if (!shape.test(label)) return undefined;
  return label.startsWith(privatePrefix) ? 'private' : 'public';
}

/** 10 of a–z and 0–9 (contract 6). */
export function mintSiteId(random: Random): string {
  return randomFrom(random, 'abcdefghijklmnopqrstuvwxyz0123456789', 10);
}
