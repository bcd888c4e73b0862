/** The realm or the configuration is wrong, so the process does not start (contract 1). */
export class KeycloakRefused extends Error {
  readonly setting: string;
  readonly problem: string;
  readonly fix: string;
  constructor(found: { check: string; setting: string; problem: string; fix: string }) {
    super(`The self-test of the identity provider failed at: ${found.check}.`);
    this.name = 'KeycloakRefused';
    this.setting = found.setting;
    this.problem = `${found.problem} (self-test, check "${found.check}")`;
    this.fix = found.fix;
  }
}
