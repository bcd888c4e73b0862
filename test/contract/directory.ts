import { describe, expect, test } from 'vitest';
import type { Role } from '../../src/core/caller.ts';
import type { Directory } from '../../src/features/people/directory/directory.ts';

/** What a test needs to bring about at the provider behind a directory. */
export type DirectoryStage = {
  readonly directory: Directory;
  readonly issuer: string;
  /** Makes a person with these direct roles; resolves with the subject. */
  readonly person: (roles: readonly Role[]) => Promise<string>;
  readonly setRoles: (subject: string, roles: readonly Role[]) => Promise<void>;
  readonly setEnabled: (subject: string, isEnabled: boolean) => Promise<void>;
  readonly remove: (subject: string) => Promise<void>;
  /** Gives the role `admin` through a group two levels above the person's own. */
  readonly giveAdminByNestedGroup: (subject: string) => Promise<void>;
  /** A fresh access token of the person with these scopes. */
  readonly token: (subject: string, scopes: readonly string[]) => Promise<string>;
  readonly revoke: (token: string) => Promise<void>;
  /** Lets every token's end pass. */
  readonly expireTokens: () => Promise<void>;
  readonly breakDown: (how: 'down' | 'slow') => Promise<void>;
  readonly recover: () => Promise<void>;
};

/** What every directory promises (contract 5). */
export function directoryContract(name: string, open: () => Promise<DirectoryStage>): void {
  describe(`the ${name} directory`, () => {
    test('has the roles, name and e-mail address of an enabled person', async () => {
      const { directory, person } = await open();
      const subject = await person(['user']);
      expect(await directory.principal(subject)).toMatchObject({
        kind: 'active',
        subject,
        name: expect.any(String),
        email: expect.stringContaining('@'),
        roles: ['user'],
      });
    });

    test('an unknown subject is missing, and was never known', async () => {
      const { directory } = await open();
      expect(await directory.principal('nobody-at-all')).toEqual({ kind: 'missing', wasKnown: false });
    });

    test('ID-02 a role from a group, nested, counts like a direct one', async () => {
      const { directory, person, giveAdminByNestedGroup } = await open();
      const subject = await person(['user']);
      await giveAdminByNestedGroup(subject);
      expect(await directory.principal(subject)).toMatchObject({ roles: ['user', 'admin'] });
    });

    test('a removed role is missing in the next answer', async () => {
      const { directory, person, setRoles } = await open();
      const subject = await person(['user', 'admin']);
      expect(await directory.principal(subject)).toMatchObject({ roles: ['user', 'admin'] });
      await setRoles(subject, []);
      expect(await directory.principal(subject)).toMatchObject({ kind: 'active', roles: [] });
    });

    test('the next answers of both kinds show a disabled and an enabled account', async () => {
      const { directory, person, setEnabled, token } = await open();
      const subject = await person(['user']);
      const value = await token(subject, ['openid']);
      await setEnabled(subject, false);
      expect(await directory.principal(subject)).toEqual({ kind: 'disabled' });
      expect(await directory.introspect(value)).toEqual({ kind: 'inactive' });
      await setEnabled(subject, true);
      expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
    });

    test('a deleted person is missing, and was known', async () => {
      const { directory, person, remove } = await open();
      const subject = await person(['user']);
      await remove(subject);
      expect(await directory.principal(subject)).toEqual({ kind: 'missing', wasKnown: true });
    });

    test('an active token has issuer, subject, client, scopes and expiry', async () => {
      const { directory, issuer, person, token } = await open();
      const subject = await person(['user']);
      const value = await token(subject, ['openid', 'sites:read']);
      expect(await directory.introspect(value)).toEqual({
        kind: 'active',
        issuer,
        subject,
        clientId: expect.any(String),
        scopes: expect.arrayContaining(['openid', 'sites:read']),
        expiresAt: expect.any(Number),
        audiences: expect.any(Array),
        grantId: expect.toBeOneOf([null, expect.any(String)]),
      });
    });

    test('revoked, expired and unknown tokens are inactive', async () => {
      const { directory, person, token, revoke, expireTokens } = await open();
      const subject = await person(['user']);
      const [revoked, expired] = [await token(subject, ['openid']), await token(subject, ['openid'])];
      await revoke(revoked);
      expect(await directory.introspect(revoked)).toEqual({ kind: 'inactive' });
      await expireTokens();
      expect(await directory.introspect(expired)).toEqual({ kind: 'inactive' });
      expect(await directory.introspect('never-was-a-token')).toEqual({ kind: 'inactive' });
    });

    test.each(['down', 'slow'] as const)(
      'ID-10 a provider that is %s counts as unavailable, never as yes or no, and recovers by itself',
      async (how) => {
        const { directory, person, token, breakDown, recover } = await open();
        const subject = await person(['user']);
        const value = await token(subject, ['openid']);
        await breakDown(how);
        expect(await directory.principal(subject)).toMatchObject({ kind: 'unavailable' });
        expect(await directory.introspect(value)).toMatchObject({ kind: 'unavailable' });
        await recover();
        expect(await directory.principal(subject)).toMatchObject({ kind: 'active' });
        expect(await directory.introspect(value)).toMatchObject({ kind: 'active' });
      },
    );
  });
}
