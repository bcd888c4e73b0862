import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';

/**
 * Names and passwords of roles and databases, which follow from ids and a key: nothing about them is stored. A database and
 * its role have the same name, which needs no quotes in SQL.
 */
export const environmentPrefix = 'postern_e_';
export const templatePrefix = 'postern_t_';

/** What the names of all databases of an Environment begin with. */
export function prefixOf(environmentId: string): string {
  return `${environmentPrefix}${hashOf(environmentId).slice(0, 24)}_`;
}

export function databaseNameOf(environmentId: string, service: string): string {
  return prefixOf(environmentId) + hashOf(service).slice(0, 12);
}

/** The same seed in another repository has another template. */
export function templateNameOf(repositoryId: string, seed: string): string {
  return templatePrefix + hashOf(`${repositoryId}\0${hashOf(seed)}`).slice(0, 32);
}

export function passwordOf(name: string, key: string): string {
  return createHmac('sha256', key).update(name).digest('base64url');
}

/**
 * What PostgreSQL stores of a password (RFC 5803). It takes this in place of the password, which so is in no statement and in
 * no log of the server.
 */
export function verifierOf(name: string, password: string): string {
  const salt = createHash('sha256').update(`salt\0${name}`).digest().subarray(0, 16);
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const keyOf = (use: string) => createHmac('sha256', salted).update(use).digest();
  const stored = createHash('sha256').update(keyOf('Client Key')).digest('base64');
  const server = keyOf('Server Key').toString('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${server}`;
}

/** PostgreSQL's own number. The password has 256 random bits, so more would not help. */
const iterations = 4_096;

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
