import { type Scope } from '../queries.ts';

/** The three things a key may reach, each at a level. Write includes read. */
export type Level = 'none' | 'read' | 'write';
export type Resource = 'env' | 'sites' | 'repos';
export type Access = Readonly<Record<Resource, Level>>;

const noAccess: Access = { env: 'none', sites: 'none', repos: 'none' };

/** Ends a sentence that begins with “It may”. */
export const resources: readonly {
  readonly id: Resource;
  readonly label: string;
  readonly says: Readonly<Record<'read' | 'write', string>>;
}[] = [
  {
    id: 'env',
    label: 'Environments',
    says: {
      read: 'read Environments, their deploys and logs',
      write: 'create, change, deploy and tear down Environments',
    },
  },
  {
    id: 'sites',
    label: 'Sites',
    says: { read: 'read your sites and all public ones', write: 'publish, change and delete your sites' },
  },
  {
    id: 'repos',
    label: 'Repositories',
    says: { read: 'read the repository registry', write: 'change the repository registry' },
  },
];

export const presets: readonly { readonly label: string; readonly access: Access }[] = [
  { label: 'Publish sites from CI', access: { ...noAccess, sites: 'write' } },
  { label: 'Deploy Environments', access: { ...noAccess, env: 'write', repos: 'read' } },
  { label: 'Read everything', access: { env: 'read', sites: 'read', repos: 'read' } },
];

export function scopesOf(access: Access): Scope[] {
  return resources.flatMap(({ id }): Scope[] => {
    const level = access[id];
    return level === 'none' ? [] : [`${id}:${level}`];
  });
}

/** Sites belong to no repository: repositories make no difference for a key that may do nothing else. */
export function touchesOnlySites({ env, sites, repos }: Access): boolean {
  return sites !== 'none' && env === 'none' && repos === 'none';
}

/** Levels from the scopes in a link. Skips unknown and forbidden scopes. */
export function accessFrom(scopes: readonly string[], allowed: readonly string[]): Access {
  const levelOf = (id: Resource): Level => {
    const named = (level: Level) => scopes.includes(`${id}:${level}`) && allowed.includes(`${id}:${level}`);
    return named('write') ? 'write' : named('read') ? 'read' : 'none';
  };
  return { env: levelOf('env'), sites: levelOf('sites'), repos: levelOf('repos') };
}
