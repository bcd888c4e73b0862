import { describe, expect, test } from 'vitest';
import { AppError } from '../../core/errors.ts';
import { fileTrouble } from '../../config/file-trouble.ts';
import { KeycloakRefused } from '../../features/keycloak/refused.ts';
import { awaited, Blamed, blaming, databaseTrouble, explainStart, Unprepared } from './start-errors.ts';

const listeners = { PORT: 3000, GATEWAY_PORT: 3001, METRICS_PORT: 9464 };

const failure = (code: string, message: string, more: object = {}) =>
  Object.assign(new Error(message), { code, ...more });

/** The error that the stores wrap it in. */
const wrapped = (cause: unknown) => new AppError('store_unavailable', { cause });

describe('an engine that does not open is told as setting, problem and fix', () => {
  test.each<[setting: string, cause: unknown, problem: RegExp, fix: RegExp]>([
    [
      'DATABASE_URL',
      wrapped(failure('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:5432')),
      /^no server listens .*127\.0\.0\.1:5432/,
      /Start the server/,
    ],
    [
      'DATABASE_URL',
      // Both addresses of localhost: their AggregateError has no message.
      Object.assign(new AggregateError([failure('ECONNREFUSED', 'connect ECONNREFUSED ::1:5432')], ''), {
        code: 'ECONNREFUSED',
      }),
      /^no server listens/,
      /host and port/,
    ],
    [
      'DATABASE_URL',
      wrapped(failure('ENOTFOUND', 'getaddrinfo ENOTFOUND db')),
      /host name cannot be resolved .*db/,
      /Fix the host/,
    ],
    [
      'DATABASE_URL',
      failure('28P01', 'password authentication failed for user "ada"'),
      /refuses the user name or the password/,
      /Fix them/,
    ],
    ['DATABASE_URL', failure('28000', 'no pg_hba.conf entry for host'), /refuses this user/, /pg_hba\.conf/],
    [
      'DATABASE_URL',
      failure('3D000', 'database "x" does not exist'),
      /does not exist on the server .*"x"/,
      /createdb/,
    ],
    [
      'DATABASE_URL',
      failure('42501', 'permission denied for schema public'),
      /lacks a privilege/,
      /OWNER TO/,
    ],
    ['DATABASE_URL', wrapped(failure('57P03', 'the database system is starting up')), /not ready/, /Wait/],
    [
      'DATABASE_URL',
      wrapped(new Error('timeout exceeded when trying to connect')),
      /does not answer/,
      /firewalls/,
    ],
    [
      'DATABASE_URL',
      new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      /requires a password/,
      /user:password@host/,
    ],
    ['KV_URL', failure('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:6379'), /^no server listens/, /Start/],
    [
      'KV_URL',
      failure('ENOTFOUND', 'getaddrinfo ENOTFOUND kv'),
      /host name cannot be resolved/,
      /Fix the host/,
    ],
    ['KV_URL', new Error('WRONGPASS invalid username-password pair'), /refuses the user/, /Fix them/],
    [
      'KV_URL',
      new Error('NOAUTH HELLO must be called with …'),
      /requires a password/,
      /redis:\/\/:password@/,
    ],
    ['KV_URL', new Error("the server's maxmemory-policy is allkeys-lru"), /may evict/, /noeviction/],
    ['KV_URL', wrapped(new Error('The key-value store did not answer within 250 ms.')), /answer/, /firewall/],
    [
      'DATA_DIR',
      failure('EACCES', "EACCES: permission denied, open '/srv/x/lock'"),
      /srv\/x\/lock/,
      /the owner of the folder/,
    ],
    ['DATA_DIR', failure('EROFS', 'EROFS: read-only file system'), /read-only/, /can write/],
    ['DATA_DIR', failure('ENOSPC', 'ENOSPC: no space left on device, write'), /full/, /Free some space/],
    [
      'DATA_DIR',
      failure('ENOTDIR', "ENOTDIR: not a directory, mkdir '/a/b'"),
      /has a file in its path/,
      /path/,
    ],
    ['DATA_DIR', failure('EEXIST', "EEXIST: file already exists, mkdir '/a'"), /is a file/, /folder/],
    ['DATA_DIR', new Error('PGlite failed to initialize'), /failed to initialize/, /does not open/],
    ['FILE', failure('ENOENT', "ENOENT: no such file or directory, open '/a'"), /no such file/, /path/],
    [
      'FILE',
      failure('EISDIR', 'EISDIR: illegal operation on a directory, read'),
      /is a folder/,
      /path of a file/,
    ],
  ])('%s: %s', async (setting, cause, problem, fix) => {
    const error = await blaming(setting, () => Promise.reject(cause)).catch((one: unknown) => one);
    const told = explainStart(error, listeners);
    expect(told).toEqual({
      setting,
      problem: expect.stringMatching(problem),
      fix: expect.stringMatching(fix),
    });
    expect(told?.problem).not.toContain('\n');
  });

  test('an address is never told with its password', () => {
    const cause = failure('X', 'cannot use postgres://ada:geheim@db/postern or redis://:geheim@kv');
    for (const setting of ['DATABASE_URL', 'KV_URL', 'DATA_DIR'])
      expect(explainStart(new Blamed(setting, cause), null)?.problem).not.toContain('geheim');
  });
});

describe('a store that is not there is waited for, one that refuses the settings is not', () => {
  test.each<[setting: string, cause: unknown, isAwaited: boolean]>([
    ['DATABASE_URL', wrapped(failure('ECONNREFUSED', 'connect ECONNREFUSED')), true],
    ['DATABASE_URL', wrapped(failure('ENOTFOUND', 'getaddrinfo ENOTFOUND db')), true],
    ['DATABASE_URL', wrapped(failure('57P03', 'the database system is starting up')), true],
    ['DATABASE_URL', wrapped(failure('53300', 'too many connections')), true],
    ['DATABASE_URL', wrapped(new Error('timeout exceeded when trying to connect')), true],
    ['DATABASE_URL', wrapped(failure('28P01', 'password authentication failed')), false],
    ['DATABASE_URL', wrapped(failure('28000', 'no pg_hba.conf entry')), false],
    ['DATABASE_URL', wrapped(failure('3D000', 'database "x" does not exist')), false],
    ['DATABASE_URL', wrapped(failure('SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate')), false],
    ['DATABASE_URL', failure('42601', 'syntax error in a migration'), false],
    ['KV_URL', wrapped(failure('ECONNREFUSED', 'connect ECONNREFUSED')), true],
    ['KV_URL', wrapped(new Error('LOADING Redis is loading the dataset in memory')), true],
    ['KV_URL', wrapped(new Error('WRONGPASS invalid username-password pair')), false],
    ['KV_URL', new Error("the server's maxmemory-policy is allkeys-lru"), false],
    ['OBJECT_STORE_URL', wrapped(failure('ServiceUnavailable', 'ServiceUnavailable: … (503)')), true],
    ['OBJECT_STORE_URL', wrapped(failure('RequestTimeTooSkewed', 'RequestTimeTooSkewed: … (403)')), true],
    ['OBJECT_STORE_URL', wrapped(failure('NoSuchBucket', 'NoSuchBucket: … (404)')), false],
    ['OBJECT_STORE_URL', wrapped(failure('AccessDenied', 'AccessDenied: … (403)')), false],
    ['DATA_DIR', wrapped(failure('ENOSPC', 'no space left on device')), false],
  ])('%s: %s', (setting, cause, isAwaited) => {
    const found = awaited(new Blamed(setting, cause));
    expect(found?.setting).toBe(isAwaited ? setting : undefined);
  });

  test('rights that a migration grants are waited for by a workload that leaves migrating to another', () => {
    const denied = new Blamed('DATABASE_URL', failure('42501', 'permission denied for schema public'));
    expect(databaseTrouble(denied, { isMigratedByOthers: true })).toBeInstanceOf(Unprepared);
    expect(databaseTrouble(denied, { isMigratedByOthers: false })).toBe(denied);
  });
});

describe('a listener that does not open names its setting', () => {
  const listen = (code: string, port: number) =>
    failure(code, `listen ${code}: 127.0.0.1:${port}`, { syscall: 'listen', port });
  test.each([
    [3000, 'PORT', /PORT=4310 npm start\. SERVICE_UI_URL uses the same port unless it is set\.$/],
    [
      3001,
      'GATEWAY_PORT',
      /GATEWAY_PORT=4311 npm start\. SITES_CONTENT_URL uses the same port unless it is set\.$/,
    ],
    [9464, 'METRICS_PORT', /METRICS_PORT=4312 npm start\.$/],
  ])('port %i is taken: %s', (port, setting, fix) => {
    expect(explainStart(listen('EADDRINUSE', port), listeners)).toEqual({
      setting,
      problem: expect.stringContaining(`${port} is used by another program`),
      fix: expect.stringMatching(fix),
    });
  });

  test('a port below 1024, an address of another machine, a host nobody knows', () => {
    expect(explainStart(listen('EACCES', 3000), listeners)).toMatchObject({
      setting: 'PORT',
      fix: expect.stringContaining('above 1023'),
    });
    expect(explainStart(listen('EADDRNOTAVAIL', 3000), listeners)).toMatchObject({ setting: 'HOST' });
    const unknown = failure('ENOTFOUND', 'getaddrinfo ENOTFOUND here', { syscall: 'getaddrinfo' });
    expect(explainStart(unknown, listeners)).toMatchObject({ setting: 'HOST' });
  });
});

test('a realm that failed the self-test is told with the check that failed', () => {
  const found = explainStart(
    new KeycloakRefused({
      check: 'introspection',
      setting: 'PRINCIPAL_SYNC_CLIENT_ID',
      problem: 'is not in the audience of tokens',
      fix: 'Add an audience mapper.',
    }),
    listeners,
  );
  expect(found).toEqual({
    setting: 'PRINCIPAL_SYNC_CLIENT_ID',
    problem: 'is not in the audience of tokens (self-test, check "introspection")',
    fix: 'Add an audience mapper.',
  });
});

test('what is not an operator’s mistake keeps its stack', () => {
  expect(explainStart(new TypeError('x is not a function'), listeners)).toBeUndefined();
  expect(explainStart(failure('ENOENT', 'ENOENT: a file of the program'), listeners)).toBeUndefined();
  expect(fileTrouble('DATA_DIR', new TypeError('x is not a function'))).toBeUndefined();
});

test('a folder or a database that another process holds is told by its own message', async () => {
  const held = Object.assign(new Error('held'), { name: 'DataDirInUse' });
  await expect(blaming('DATA_DIR', () => Promise.reject(held))).rejects.toBe(held);
});
