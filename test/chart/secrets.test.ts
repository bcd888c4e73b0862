import { expect, test } from 'vitest';
import { fewest, keycloak, over, render, refusal, withEachHelm, workloads } from './helm.ts';

const bootstrap = { bootstrapAdmin: { email: 'ada@example.com', existingSecret: 'bootstrap' } };

withEachHelm((helm) => {
  const rendered = render(helm, over(fewest, keycloak));

  test('SE-04: secrets are only referenced: none is in a manifest, an argument or a ConfigMap', () => {
    const all = render(helm, over(fewest, bootstrap));
    expect(all.has('Secret')).toBe(false);
    expect(all.has('ConfigMap')).toBe(false);
    for (const component of [...workloads, 'migrate'] as const) {
      const secrets = [...all.env(component).values()].filter(({ name }) =>
        /SECRET|PASSWORD|_KEY$|DATABASE_URL|KV_URL/.test(name),
      );
      expect(secrets.length).toBeGreaterThan(0);
      expect(secrets.filter(({ value }) => value !== undefined)).toEqual([]);
    }
  });

  test('5.6: the principal-sync client is given to web and worker, and never to the gateway', () => {
    for (const component of ['web', 'worker'] as const) {
      const env = rendered.env(component);
      expect(env.get('PRINCIPAL_SYNC_CLIENT_ID')?.value).toBe('postern-principal-sync');
      expect(env.get('PRINCIPAL_SYNC_CLIENT_SECRET')?.valueFrom?.secretKeyRef).toEqual({
        name: 'principal-sync',
        key: 'principal-sync-client-secret',
      });
      expect(env.get('OIDC_ISSUER')?.value).toBe('https://id.example.com/realms/postern');
    }
    expect(JSON.stringify(rendered.pod('gateway'))).not.toMatch(/principal.?sync/i);
  });

  test('GW-10: the gateway has no identity client, no session secret, no encryption key and no database that writes', () => {
    const env = rendered.env('gateway');
    const secrets = [...env.values()].flatMap(({ name, valueFrom }) =>
      valueFrom?.secretKeyRef === undefined ? [] : [[name, valueFrom.secretKeyRef.name]],
    );
    expect(Object.fromEntries(secrets)).toEqual({
      DATABASE_URL: 'db-gateway',
      KV_URL: 'kv',
      OBJECT_STORE_ACCESS_KEY: 'store',
      OBJECT_STORE_SECRET_KEY: 'store',
      GRANT_SECRET: 'grant',
    });
    expect(
      [...env.keys()].filter((name) => /^(OIDC|PRINCIPAL|IDENTITY|SESSION|ENCRYPTION|BOOTSTRAP)/.test(name)),
    ).toEqual([]);
  });

  test('the management credential is given to nothing', () => {
    expect(rendered.text).not.toContain('management');
    expect(rendered.text).not.toContain('provisioning');
  });

  test('the gateway does not get the sign-in client, and only web gets the first administrator', () => {
    const all = render(helm, over(fewest, bootstrap));
    for (const component of workloads) {
      const isWeb = component === 'web';
      expect(rendered.env(component).has('OIDC_CLIENT_SECRET')).toBe(component !== 'gateway');
      expect(all.env(component).has('BOOTSTRAP_ADMIN_PASSWORD')).toBe(isWeb);
    }
  });

  test('every credential comes from the Secret and the key that its value names', () => {
    const at = (name: string) => ({ existingSecret: `secret-${name}`, key: `key.${name}` });
    const values = over(fewest, keycloak, {
      database: { ...at('database'), gateway: at('gateway-database'), migrations: at('migrations') },
      kv: at('kv'),
      objectStore: {
        accessKey: at('access'),
        secretKey: at('secret'),
        gateway: { accessKey: at('gateway-access'), secretKey: at('gateway-secret') },
      },
      secrets: { session: at('session'), encryption: at('encryption'), grant: at('grant') },
      identity: { clients: { login: at('login'), principalSync: at('sync') } },
    });
    const shared = {
      DATABASE_URL: 'database',
      KV_URL: 'kv',
      OBJECT_STORE_ACCESS_KEY: 'access',
      OBJECT_STORE_SECRET_KEY: 'secret',
      SESSION_SECRET: 'session',
      ENCRYPTION_KEY: 'encryption',
      GRANT_SECRET: 'grant',
      PRINCIPAL_SYNC_CLIENT_SECRET: 'sync',
      OIDC_CLIENT_SECRET: 'login',
    };
    const expected = {
      web: shared,
      worker: shared,
      gateway: {
        DATABASE_URL: 'gateway-database',
        KV_URL: 'kv',
        OBJECT_STORE_ACCESS_KEY: 'gateway-access',
        OBJECT_STORE_SECRET_KEY: 'gateway-secret',
        GRANT_SECRET: 'grant',
      },
      migrate: { DATABASE_URL: 'migrations' },
    };
    const all = render(helm, values);
    for (const component of ['web', 'worker', 'gateway', 'migrate'] as const) {
      const found = [...all.env(component).values()].flatMap(({ name, valueFrom }) =>
        valueFrom === undefined ? [] : [[name, valueFrom.secretKeyRef]],
      );
      const wanted = Object.entries(expected[component]).map(([name, one]) => [
        name,
        { name: `secret-${one}`, key: `key.${one}` },
      ]);
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));
    }
    const admin = { email: 'ada@example.com', existingSecret: 'b', key: 'k' };
    const password = render(helm, over(fewest, { bootstrapAdmin: admin }))
      .env('web')
      .get('BOOTSTRAP_ADMIN_PASSWORD');
    expect(password?.valueFrom?.secretKeyRef).toEqual({ name: 'b', key: 'k' });
  });

  test('all missing credentials are named at once', () => {
    const trouble = refusal(helm, {
      image: { repository: 'x' },
      identity: { provider: 'keycloak' },
    });
    for (const name of [
      'database',
      'database.gateway',
      'kv',
      'objectStore.accessKey',
      'objectStore.secretKey',
      'secrets.session',
      'secrets.encryption',
      'secrets.grant',
      'identity.clients.login',
      'identity.clients.principalSync',
    ])
      expect(trouble).toContain(`  ${name}.existingSecret: is missing`);
    expect(trouble).toContain('identity.clients.principalSync.clientId: is missing');
    expect(trouble).toContain('ui.appUrl: is missing');
    expect(trouble).toContain('sites.contentUrl: is missing');
    expect(trouble).toContain('objectStore.url: is missing');
  });
});
