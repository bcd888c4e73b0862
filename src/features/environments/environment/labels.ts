import { type Random, randomFrom } from '../../../core/ids.ts';

/**
 * Host names of Environments: `<service>-<label>` before their content host, in one DNS level. Their form differs from host
 * names of Sites: `e` and 85 random bits after the last hyphen.
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

/** Undefined: the text does not have this shape. A result does not mean that the Environment exists. */
export function readServiceLabel(
  text: string,
): { readonly service: string; readonly label: string } | undefined {
  const [, service, label] = shape.exec(text) ?? [];
  return service === undefined || label === undefined ? undefined : { service, label };
}
