import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';

/**
 * Names and passwords of roles and databases. They are derived from ids and a key, so nothing is stored. A database and its
 * role have the same name, which needs no quotes in SQL.
 */
export const environmentPrefix = 'postern_e_';
export const templatePrefix = 'postern_t_';

/** Prefix of the names of all databases of an Environment. */
export function prefixOf(environmentId: string): string {
  return `${environmentPrefix}${hashOf(environmentId).slice(0, 24)}_`;
}

export function databaseNameOf(environmentId: string, service: string): string {
  return prefixOf(environmentId) + hashOf(service).slice(0, 12);
}

/** Name of a template. The same seed in another repository has a different one. */
export function templateNameOf(repositoryId: string, seed: string): string {
  return templatePrefix + hashOf(`${repositoryId}\0${hashOf(seed)}`).slice(0, 32);
}

export function passwordOf(name: string, key: string): string {
  return createHmac('sha256', key).update(name).digest('base64url');
}

/**
 * The verifier that PostgreSQL stores for a password (RFC 5803). PostgreSQL accepts it instead of the password, which
 * therefore appears in no statement and in no log of the server.
 */
export function verifierOf(name: string, password: string): string {
  const salt = createHash('sha256').update(`salt\0${name}`).digest().subarray(0, 16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const keyOf = (use: string) => createHmac('sha256', salted).update(use).digest();
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64');
  const server = keyOf('Server Key').toString('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${server}`;
}

/** PostgreSQL's default. The password has 256 random bits, so more iterations would not help. */
const iterations = 4_096;

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
