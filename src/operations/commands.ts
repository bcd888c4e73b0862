import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createApp } from '../composition/app.ts';
import type { Account } from '../features/accounts/account-store.ts';
import type { Accounts } from '../features/accounts/accounts.ts';
import { productionCost } from '../features/accounts/passwords.ts';
import { appSettingsOf } from '../composition/app-settings.ts';
import { ConfigError } from '../config/config-error.ts';
import type { Config, KeycloakSettings } from '../config/read.ts';
import { systemAuditContext } from '../core/caller.ts';
import { systemClock } from '../core/clock.ts';
import { type Anchor, formatAuditReport, verifyAuditLog } from '../features/audit/verify.ts';
import { keyFormat } from '../features/keys/key-value.ts';
import { generateSetupToken } from '../features/accounts/setup-token.ts';
import { checkUpload, defaultSitesConfig, uploadKindOf } from '../features/sites/sites.ts';
import { openForMigration, type OpenBackends, openBackends } from '../composition/backends/backends.ts';
import { hasDatabase } from '../platform/data-dir.ts';
import type { Database } from '../platform/database/database.ts';
import { grantViews } from '../platform/database/gateway-role.ts';
import { migrate } from '../platform/database/migrate.ts';
import { blaming } from '../composition/backends/start-errors.ts';

/**
 * An operator's commands. Each opens the backends itself, prints its result on the standard output and everything else on
 * the standard error, and returns its exit code.
 */

export function setupLink(config: Config): string {
  return `${config.uiUrl}/setup#token=${generateSetupToken(config.sessionSecrets, systemClock)}`;
}

/** Works next to a running server: the link is signed, not stored, and is refused once an administrator exists. */
export async function printLoginLink(config: Config): Promise<number> {
  if (config.keycloak !== null) return refuseAccounts(config.keycloak);
  console.log(setupLink(config));
  console.error('The link works once, for 15 minutes, and only while there is no administrator.');
  console.error('An administrator who lost the password needs: admin reset-password EMAIL');
  return 0;
}

function refuseAccounts({ issuer, roleNames }: KeycloakSettings): number {
  console.error(`postern: Keycloak (${issuer}) manages the accounts, passwords and passkeys.`);
  console.error(`Users with its realm role ${roleNames.admin} are administrators.`);
  return 1;
}

export async function runMigrations(config: Config): Promise<number> {
  return await withBackends(
    config,
    async (backends) => {
      const applied = await applyMigrations(config, backends);
      console.log(applied.length === 0 ? 'The database is up to date.' : `Applied ${applied.join(', ')}.`);
      return 0;
    },
    { isNewFine: true },
  );
}

export async function runVerify(config: Config, anchor: Anchor | undefined): Promise<number> {
  return await withBackends(config, async (backends) => {
    await applyMigrations(config, backends);
    const app = await createAppFor(config, backends);
    const report = await verifyAuditLog(app.services.read.chain, anchor);
    console.log(formatAuditReport(report));
    return report.brokenAt === undefined ? 0 : 1;
  });
}

export async function runImport(config: Config, file: string): Promise<number> {
  const text = await blaming('FILE', () => readFile(resolve(file), 'utf8'));
  const importing = async (backends: OpenBackends) => {
    await applyMigrations(config, backends);
    const app = await createAppFor(config, backends);
    await app.services.clock.sync();
    const result = await app.services.importKeys(text.split('\n'));
    if (result.kind === 'imported') {
      const keys = result.count === 1 ? 'key' : 'keys';
      console.log(`Imported ${result.count} ${keys}; skipped ${result.alreadyThere} that already existed.`);
      for (const { line, subject } of result.owners) {
        if ((await app.services.identity.directory.principal(subject)).kind !== 'missing') continue;
        console.error(
          `${file}:${line}: warning: there is no account with the subject ${subject} yet. The key works, and belongs to that account once it signs in.`,
        );
      }
      return 0;
    }
    for (const { line, problem } of result.problems) console.error(`${file}:${line}: ${problem}`);
    console.error('Nothing was imported. Fix these lines, and run the command again.');
    return 1;
  };
  return await withBackends(config, importing, { isNewFine: true });
}

/**
 * Restores access when no administrator can sign in. Only the new password goes to the standard output. Nothing else of
 * the account changes, so a disabled account stays disabled.
 */
export async function runResetPassword(config: Config, email: string): Promise<number> {
  return await withAccount(config, email, async (accounts, account) => {
    const { generatedPassword } = await accounts.resetPassword(systemAuditContext, account.userId);
    console.log(generatedPassword);
    console.error(
      `The new password of ${account.email} is shown only once. The account is signed out everywhere.`,
    );
  });
}

/** For an account whose authenticators are lost or copied. The password stays. */
export async function runResetPasskeys(config: Config, email: string): Promise<number> {
  return await withAccount(config, email, async (accounts, account) => {
    await accounts.resetPasskeys(systemAuditContext, account.userId);
    console.log(`The account ${account.email} has no passkeys and no recovery codes now.`);
    console.error('It is signed out everywhere. Its password stays.');
  });
}

async function withAccount(
  config: Config,
  email: string,
  change: (accounts: Accounts, account: Account) => Promise<void>,
): Promise<number> {
  if (config.keycloak !== null) return refuseAccounts(config.keycloak);
  return await withBackends(config, async (backends) => {
    await applyMigrations(config, backends);
    const app = await createAppFor(config, backends);
    // Not start(): it would give the users of a running server the issuer from this command's SERVICE_UI_URL.
    await app.services.clock.sync();
    const { accounts } = app.services.identity;
    const account = await accounts.findByEmail(email);
    if (account === undefined) {
      console.error(
        `postern: there is no account with the e-mail address ${email} in ${backends.description}.`,
      );
      console.error('Nothing was changed. Check the e-mail address, and DATA_DIR or DATABASE_URL.');
      return 1;
    }
    await change(accounts, account);
    await app.settled();
    if (!account.isEnabled)
      console.error('The account is disabled: it cannot sign in until an administrator enables it.');
    return 0;
  });
}

/** A leak of ENCRYPTION_KEY and the database reveals the older keys too, so after a leak the operator runs this twice. */
export async function runRotateSigningKeys(config: Config): Promise<number> {
  if (config.keycloak !== null) {
    console.error(
      `postern: Keycloak (${config.keycloak.issuer}) signs the tokens. Rotate the keys of its realm.`,
    );
    return 1;
  }
  return await withBackends(config, async (backends) => {
    await applyMigrations(config, backends);
    const app = await createAppFor(config, backends);
    const { clock, provider } = app.services;
    if (provider === null) throw new Error('Without Keycloak there is the built-in provider.');
    // Not start(), for the same reason as above.
    await clock.sync();
    const count = await provider.rotateSigningKeys(systemAuditContext);
    console.log(
      `There are ${count} signing keys now. The server signs with the new key from its next start; all keys verify.`,
    );
    return 0;
  });
}

/** Needs neither a database nor a server: the rules are part of the program. */
export async function runSiteCheck({ keyPrefix }: Config, file: string): Promise<number> {
  const kind = uploadKindOf(file);
  if (kind === undefined) {
    console.error(`postern: ${file} is not a .zip, .tar.gz, .tgz or .html file.`);
    return 2;
  }
  const path = resolve(file);
  const { size } = await blaming('FILE', () => stat(path));
  if (size > defaultSitesConfig.upload.maxUploadBytes) {
    console.error(`${file}: is larger than the limit of ${defaultSitesConfig.upload.maxUploadBytes} bytes`);
    return 1;
  }
  const report = await checkUpload({ path, kind }, defaultSitesConfig.upload, keyFormat(keyPrefix));
  for (const { path: entry, problem } of report.problems)
    console.error(entry === '' ? `${file}: ${problem}` : `${file}: ${entry}: ${problem}`);
  if (report.receipt === null) {
    console.error('Postern would refuse this upload.');
    return 1;
  }
  for (const { message } of report.warnings) console.error(`${file}: warning: ${message}`);
  for (const { rule, count } of report.leftOut)
    console.error(`${file}: left out by the rule ${rule}: ${count}`);
  console.log(
    `${report.files} ${report.files === 1 ? 'file' : 'files'}, ${report.bytes} bytes, receipt ${report.receipt}`,
  );
  return 0;
}

export async function applyMigrations(config: Config, backends: OpenBackends): Promise<string[]> {
  const setting = config.databaseUrl === null ? 'DATA_DIR' : 'DATABASE_URL';
  const { database, close } = await openForMigration(config, backends.database);
  try {
    const applied = await blaming(setting, () => migrate(database));
    await grantToGateway(config, database);
    return applied;
  } finally {
    await close();
  }
}

/** Grants privileges to the role of a standalone gateway, before its first start. @throws ConfigError */
async function grantToGateway({ gatewayDatabaseRole }: Config, database: Database): Promise<void> {
  if (gatewayDatabaseRole === null) return;
  const unavailableReason = await blaming('DATABASE_URL', () => grantViews(database, gatewayDatabaseRole));
  if (unavailableReason !== null)
    throw new ConfigError([{ setting: 'GATEWAY_DATABASE_ROLE', ...unavailableReason }]);
}

function createAppFor(config: Config, backends: OpenBackends) {
  return createApp(appSettingsOf(config, { passwordCost: productionCost }), backends);
}

async function withBackends(
  config: Config,
  work: (backends: OpenBackends) => Promise<number>,
  { isNewFine = false } = {},
): Promise<number> {
  // A mistyped folder is an error. Otherwise the command would create an empty database in it.
  if (!isNewFine && config.databaseUrl === null && !hasDatabase(config.dataDir)) {
    console.error(`postern: there is no database in ${config.dataDir}. Check DATA_DIR.`);
    return 1;
  }
  const backends = await openBackends(config, {
    isServer: false,
    onFirstStart: () => console.error(`postern: creating the database in ${config.dataDir} …`),
  });
  try {
    return await work(backends);
  } finally {
    await backends.close();
  }
}
