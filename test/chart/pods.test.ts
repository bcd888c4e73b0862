import { expect, test } from 'vitest';
import { fewest, keycloak, over, render, withEachHelm } from './helm.ts';

/** Pod security standards, profile "restricted", and what we ask beyond it. */
withEachHelm((helm) => {
  const rendered = render(helm, over(fewest, keycloak));
  const components = ['web', 'gateway', 'worker', 'migrate', 'test'] as const;

  test.each(components)(
    '%s runs as a numeric user that is not root, with nothing it could gain',
    (component) => {
      const pod = rendered.pod(component);
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 65532,
        runAsGroup: 65532,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      expect(pod.initContainers).toBeUndefined();
      expect(pod.containers).toHaveLength(1);
      for (const container of pod.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          runAsNonRoot: true,
          capabilities: { drop: ['ALL'] },
          seccompProfile: { type: 'RuntimeDefault' },
        });
      }
      for (const name of ['hostNetwork', 'hostPID', 'hostIPC']) expect(pod[name]).toBeUndefined();
    },
  );

  test.each(components)('%s has no token of the cluster, and no addresses of other services', (component) => {
    expect(rendered.pod(component).automountServiceAccountToken).toBe(false);
    expect(rendered.pod(component)['enableServiceLinks']).toBe(false);
  });

  test('the service account hands out no token either', () => {
    expect(rendered.get('ServiceAccount', 'acme-postern')).toMatchObject({
      automountServiceAccountToken: false,
    });
    expect(rendered.pod('web')['serviceAccountName']).toBe('acme-postern');
    const none = render(helm, over(fewest, { serviceAccount: { create: false } }));
    expect(none.has('ServiceAccount')).toBe(false);
    expect(none.pod('web')['serviceAccountName']).toBe('default');
  });

  test.each(['web', 'gateway', 'worker', 'migrate'] as const)(
    '%s writes to folders with a limit, and nowhere else',
    (component) => {
      const { volumes } = rendered.pod(component);
      expect(volumes.map(({ name }) => name)).toEqual(['data', 'tmp']);
      for (const volume of volumes) expect(volume['emptyDir']).toEqual({ sizeLimit: expect.any(String) });
      const mounts = rendered.container(component).volumeMounts;
      expect(mounts).toEqual([
        { name: 'data', mountPath: '/data' },
        { name: 'tmp', mountPath: '/tmp' },
      ]);
      expect(rendered.env(component).get('DATA_DIR')?.value).toBe('/data');
    },
  );

  test.each(components)('%s requests processor and memory, and limits its memory', (component) => {
    const { requests, limits } = rendered.container(component).resources;
    expect(Object.keys(requests).toSorted()).toEqual(['cpu', 'memory']);
    expect(limits).toHaveProperty('memory');
  });

  test('every pod can pull from a private registry', () => {
    const secrets = [{ name: 'pull' }];
    const all = render(helm, over(fewest, { global: { imagePullSecrets: secrets } }));
    for (const component of components) expect(all.pod(component)['imagePullSecrets']).toEqual(secrets);
  });
});
