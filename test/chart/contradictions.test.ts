import { expect, test } from 'vitest';
import {
  fewest,
  keycloak,
  over,
  refusal,
  render,
  template,
  type Values,
  withEachHelm,
  workloads,
} from './helm.ts';

const shared = (value = 'true') => ({ extraEnv: [{ name: 'SITES_ALLOW_SHARED_APEX', value }] });
const sync = (client: Values) => over(fewest, keycloak, { identity: { clients: { principalSync: client } } });
const oneDomain = over(fewest, { sites: { contentUrl: 'https://sites.example.com' } });

withEachHelm((helm) => {
  /** The refusals of values that are otherwise valid. */
  function onlyMistake(values: Values): string {
    const trouble = refusal(helm, values);
    if (!trouble.includes(': 1 value(s) need fixing')) throw new Error(`Not one mistake, but: ${trouble}`);
    return trouble;
  }

  test('the gateway cannot be switched off, nor be left without pods', () => {
    expect(onlyMistake(over(fewest, { gateway: { enabled: false } }))).toContain('gateway.enabled: is false');
    expect(refusal(helm, over(fewest, { gateway: { replicas: 0 } }))).toContain('replicas');
    const none = { enabled: true, minReplicas: 0 };
    expect(refusal(helm, over(fewest, { gateway: { autoscaling: none } }))).toContain('minReplicas');
  });

  test('5.6: Keycloak without a principal-sync client is refused', () => {
    expect(onlyMistake(sync({ clientId: '' }))).toContain(
      'identity.clients.principalSync.clientId: is missing',
    );
    expect(onlyMistake(sync({ existingSecret: '' }))).toContain(
      'identity.clients.principalSync.existingSecret: is missing',
    );
  });

  test('5.6: the management credential in place of the principal-sync client is refused', () => {
    const inPlace = 'identity.clients.principalSync: is the management client';
    expect(onlyMistake(sync({ clientId: 'provisioning' }))).toContain(inPlace);
    expect(onlyMistake(sync({ existingSecret: 'management', key: 'management-client-secret' }))).toContain(
      inPlace,
    );
    for (const clientId of ['admin-cli', 'realm-management'])
      expect(onlyMistake(sync({ clientId }))).toContain(`${clientId} is a client that manages the realm`);
  });

  test('5.6: two clients may share a Secret, and not a key in it', () => {
    const one = { existingSecret: 'clients' };
    const apart = { identity: { clients: { principalSync: one, management: one, login: one } } };
    expect(
      render(helm, over(fewest, keycloak, apart))
        .env('worker')
        .has('PRINCIPAL_SYNC_CLIENT_SECRET'),
    ).toBe(true);
    const same = { existingSecret: 'clients', key: 'same' };
    expect(
      onlyMistake(over(fewest, keycloak, { identity: { clients: { principalSync: same, login: same } } })),
    ).toContain('identity.clients.principalSync: is the login client');
    expect(
      onlyMistake(over(fewest, keycloak, { identity: { clients: { management: same, login: same } } })),
    ).toContain('identity.clients.login: is the management client');
  });

  test('5.6: the management credential cannot be set in another way', () => {
    const named = { secretKeyRef: { name: 'management', key: 'management-client-secret' } };
    const ways = [
      { extraEnv: [{ name: 'MINE', valueFrom: named }] },
      { extraEnvFrom: [{ secretRef: { name: 'management' } }] },
      { extraVolumes: [{ name: 'v', secret: { secretName: 'management' } }] },
      { extraVolumes: [{ name: 'v', projected: { sources: [{ secret: { name: 'management' } }] } }] },
    ];
    for (const component of workloads) {
      for (const way of ways) {
        expect(onlyMistake(over(fewest, keycloak, { [component]: way }))).toContain(
          `hands out identity.clients.management, which is not for ${component}`,
        );
      }
    }
  });

  test('GW-10: forbidden credentials of the gateway cannot be set in another way', () => {
    const names: Record<string, string> = {
      login: 'identity.clients.login',
      'principal-sync': 'identity.clients.principalSync',
      session: 'secrets.session',
      encryption: 'secrets.encryption',
      db: 'database',
    };
    for (const [name, credential] of Object.entries(names)) {
      const values = over(fewest, keycloak, { gateway: { extraEnvFrom: [{ secretRef: { name } }] } });
      expect(onlyMistake(values)).toContain(`hands out ${credential}, which is not for gateway`);
    }
    const item = (key: string) => ({
      gateway: { extraVolumes: [{ name: 'v', secret: { secretName: 'db', items: [{ key, path: 'x' }] } }] },
    });
    expect(template(helm, over(fewest, item('ca.pem'))).status).toBe(0);
    expect(onlyMistake(over(fewest, item('database-url')))).toContain(
      'hands out database, which is not for gateway',
    );
  });

  test('GW-10: a gateway on the database address of web is refused', () => {
    const gateway = { existingSecret: 'db', key: 'database-url' };
    expect(onlyMistake(over(fewest, { database: { gateway } }))).toContain(
      'database.gateway: is an address that may write',
    );
  });

  test('half of the identity settings is refused, whichever half is set', () => {
    expect(onlyMistake(over(fewest, { identity: { issuer: 'https://id.example.com' } }))).toContain(
      'while the provider is builtin',
    );
    expect(onlyMistake(over(fewest, keycloak, { identity: { issuer: '' } }))).toContain(
      'identity.issuer: is missing or not https',
    );
    const http = { identity: { issuer: 'http://id.example.com/realms/postern' } };
    expect(onlyMistake(over(fewest, keycloak, http))).toContain('identity.issuer: is missing or not https');
    const admin = { bootstrapAdmin: { email: 'ada@example.com', existingSecret: 'b' } };
    expect(onlyMistake(over(fewest, keycloak, admin))).toContain(
      'bootstrapAdmin: is for the built-in provider',
    );
    expect(onlyMistake(over(fewest, { bootstrapAdmin: { email: 'ada@example.com' } }))).toContain(
      'bootstrapAdmin: is half set',
    );
    const half = { objectStore: { gateway: { accessKey: { existingSecret: 'x' } } } };
    expect(onlyMistake(over(fewest, half))).toContain('objectStore.gateway: has one key of a pair');
  });

  test('GW-05: SITES_ALLOW_SHARED_APEX on web or gateway alone is refused', () => {
    for (const values of [fewest, oneDomain]) {
      expect(onlyMistake(over(values, { web: shared() }))).toContain(
        'SITES_ALLOW_SHARED_APEX: is set on web alone',
      );
      expect(onlyMistake(over(values, { gateway: shared() }))).toContain(
        'SITES_ALLOW_SHARED_APEX: is set on gateway alone',
      );
    }
    const other = refusal(helm, over(fewest, { web: shared('yes'), gateway: shared('yes') }));
    expect(other).toContain('SITES_ALLOW_SHARED_APEX: is neither true nor unset');
  });

  test('GW-05: web app and content hosts on one registrable domain need SITES_ALLOW_SHARED_APEX on both', () => {
    expect(onlyMistake(oneDomain)).toContain('shares the registrable domain example.com with the web app');
    const both = render(helm, over(oneDomain, { web: shared(), gateway: shared() }));
    for (const component of ['web', 'gateway'] as const)
      expect(both.env(component).get('SITES_ALLOW_SHARED_APEX')?.value).toBe('true');
    expect(
      onlyMistake(over(fewest, { sites: { contentUrl: 'https://POSTERN.example.com:8443' } })),
    ).toContain('sites.contentUrl: has the host of the web app');
  });

  test('GW-05: a domain of Environments is checked like that of sites', () => {
    const at = (contentUrl: string) => onlyMistake(over(fewest, { environments: { contentUrl } }));
    expect(at('https://branches.example.com')).toContain(
      'environments.contentUrl: shares the registrable domain example.com with the web app',
    );
    expect(at('https://postern.example.com')).toContain(
      'environments.contentUrl: has the host of the web app',
    );
    expect(at('http://branches.example.org')).toContain('environments.contentUrl: is not https');
  });

  test('GW-05: two names below a suffix such as co.uk are two domains', () => {
    const urls = (ui: string, content: string) => ({ ui: { appUrl: ui }, sites: { contentUrl: content } });
    expect(template(helm, over(fewest, urls('https://one.co.uk', 'https://two.co.uk'))).status).toBe(0);
    expect(onlyMistake(over(fewest, urls('https://a.one.co.uk', 'https://b.one.co.uk')))).toContain(
      'domain one.co.uk',
    );
  });

  test('SE-02: an address that is not https, or more than an origin, is refused', () => {
    expect(onlyMistake(over(fewest, { ui: { appUrl: 'http://postern.example.com' } }))).toContain(
      'ui.appUrl: is not https',
    );
    expect(onlyMistake(over(fewest, { sites: { contentUrl: 'http://sites.example.net' } }))).toContain(
      'sites.contentUrl: is not https',
    );
    expect(onlyMistake(over(fewest, { ui: { appUrl: 'https://postern.example.com/app' } }))).toContain(
      'ui.appUrl: has more than scheme, host and port',
    );
  });

  test('a missing secret is refused, each by its name', () => {
    const without = { existingSecret: '' };
    const cases: [Values, string][] = [
      [{ database: without }, 'database.existingSecret'],
      [{ database: { gateway: without } }, 'database.gateway.existingSecret'],
      [{ kv: without }, 'kv.existingSecret'],
      [{ objectStore: { secretKey: without } }, 'objectStore.secretKey.existingSecret'],
      [{ secrets: { session: without } }, 'secrets.session.existingSecret'],
      [{ secrets: { encryption: without } }, 'secrets.encryption.existingSecret'],
      [{ secrets: { grant: without } }, 'secrets.grant.existingSecret'],
    ];
    for (const [values, name] of cases)
      expect(onlyMistake(over(fewest, values))).toContain(`${name}: is missing`);
  });

  test('5.8: a plaintext secret is refused: it would stay in the history of releases', () => {
    const clear = [
      { name: 'SMTP_PASSWORD', value: 'x' },
      { name: 'GITHUB_TOKEN', value: 'x' },
      { name: 'PROXY', value: 'https://me:word@proxy.example.com' },
    ];
    for (const one of clear)
      expect(onlyMistake(over(fewest, { worker: { extraEnv: [one] } }))).toContain(
        `worker.extraEnv: holds ${one.name} in clear`,
      );
    const file = { name: 'SMTP_PASSWORD_FILE', value: '/run/smtp' };
    expect(template(helm, over(fewest, { worker: { extraEnv: [file] } })).status).toBe(0);
    const url = refusal(
      helm,
      over(fewest, { objectStore: { url: 's3://key:word@bucket?endpoint=https://s3.example.com' } }),
    );
    expect(url).toContain('objectStore');
    expect(url).not.toContain('1 value(s)');
  });

  test('a variable that the chart sets, or omits on purpose, cannot be set as well', () => {
    for (const name of [
      'DATABASE_URL',
      'SERVICE_UI_URL',
      'OIDC_CLIENT_SECRET_FILE',
      'PRINCIPAL_SYNC_CLIENT_ID',
    ]) {
      const values = over(fewest, { gateway: { extraEnv: [{ name, valueFrom: {} }] } });
      expect(onlyMistake(values)).toContain(`gateway.extraEnv: sets ${name}`);
    }
  });

  test('a pod that would be killed before it has answered is refused', () => {
    const hasty = { preStopSeconds: 25, terminationGracePeriodSeconds: 30 };
    expect(onlyMistake(over(fewest, { web: hasty }))).toContain(
      'web.terminationGracePeriodSeconds: ends a pod before',
    );
  });

  test('an autoscaler whose minimum exceeds its maximum, a route without a Gateway, and a duplicate volume are refused', () => {
    const upside = { enabled: true, minReplicas: 5, maxReplicas: 4 };
    expect(onlyMistake(over(fewest, { web: { autoscaling: upside } }))).toContain(
      'web.autoscaling: has more fewest than most pods',
    );
    const routed = { httpRoute: { enabled: true }, trustedProxies: ['10.20.0.0/16'] };
    expect(onlyMistake(over(fewest, routed))).toContain('httpRoute: has no parentRefs');
    expect(onlyMistake(over(fewest, { web: { extraVolumes: [{ name: 'tmp', emptyDir: {} }] } }))).toContain(
      'has a volume tmp',
    );
  });

  test('a proxy in front without addresses is refused: every client would count as the proxy', () => {
    const parents = { parentRefs: [{ name: 'public' }] };
    for (const front of [
      { ingress: { enabled: true } },
      { httpRoute: { enabled: true, web: parents, content: parents } },
    ]) {
      expect(onlyMistake(over(fewest, front))).toContain('trustedProxies: is empty while');
      const named = render(helm, over(fewest, front, { trustedProxies: ['10.20.0.0/16', '::1'] }));
      const none = render(helm, over(fewest, front, { trustedProxies: 'none' }));
      for (const component of workloads) {
        expect(named.env(component).get('TRUSTED_PROXIES')?.value).toBe('10.20.0.0/16,::1');
        expect(none.env(component).has('TRUSTED_PROXIES')).toBe(false);
      }
    }
    expect(refusal(helm, over(fewest, { trustedProxies: 'all' }))).toContain('trustedProxies');
  });

  test('more pods than the limit of an installation are refused, including those of an update', () => {
    const autoscaled = (maxReplicas: number) => ({ autoscaling: { enabled: true, maxReplicas } });
    const most = over(fewest, { web: autoscaled(10), gateway: autoscaled(34), worker: { replicas: 4 } });
    expect(template(helm, most).status).toBe(0);
    // What an autoscaler that is off would allow does not count.
    expect(template(helm, over(fewest, { web: { autoscaling: { maxReplicas: 500 } } })).status).toBe(0);
    for (const more of [{ worker: { replicas: 5 } }, { web: autoscaled(11) }])
      expect(onlyMistake(over(most, more))).toContain('have 49 pods together; the most is 48');
  });

  test('a value that does not exist is refused, at every depth', () => {
    for (const unknown of [
      { replicas: 3 },
      { web: { replica: 3 } },
      { gateway: { service: { port: 80 } } },
      { identity: { clients: { principalSync: { secret: 'x' } } } },
      { networkPolicy: { egress: { redis: {} } } },
      { web: { resources: { request: {} } } },
    ] satisfies Values[])
      expect(refusal(helm, over(fewest, unknown))).toMatch(/additional ?propert/i);
  });

  test('root is refused, as user, as group and by name', () => {
    for (const podSecurity of [{ runAsUser: 0 }, { runAsGroup: 0 }, { fsGroup: 0 }, { runAsUser: 'node' }])
      expect(refusal(helm, over(fewest, { podSecurity }))).toContain('podSecurity');
  });
});
