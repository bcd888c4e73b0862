import { type Random, randomFrom } from '../../../core/ids.ts';

/**
 * Host names of Environments: `<service>-<label>` in front of their content host, one DNS level. The form alone tells them from
 * those of Sites: `e` and 85 random bits, after the last hyphen.
 */
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
const shape = /^([a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)-(e[a-z2-7]{17})$/;

export function generateEnvironmentLabel(random: Random): string {
  return `e${randomFrom(random, alphabet, 17)}`;
}

/** The first part of a host name of a service. */
export function serviceLabel(service: string, label: string): string {
  return `${service}-${label}`;
}

/** Undefined for text that does not have the shape. There may be no such Environment. */
export function readServiceLabel(
  text: string,
): { readonly service: string; readonly label: string } | undefined {
  const [, service, label] = shape.exec(text) ?? [];
  return service === undefined || label === undefined ? undefined : { service, label };
}
