import { useQuery } from '@tanstack/react-query';
import type { LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useIsAdministrator, whoAmI } from '../api/queries.ts';
import { environmentPolicy } from './environment-policy.ts';
import {
  BellIcon,
  BranchIcon,
  CardIcon,
  GaugeIcon,
  GlobeIcon,
  HelpIcon,
  HomeIcon,
  KeyIcon,
  MapIcon,
  PeopleIcon,
  PlugIcon,
  RobotIcon,
  ScrollIcon,
  SocketIcon,
  SlidersIcon,
  SparkIcon,
  StackIcon,
  TerminalIcon,
  TreeIcon,
  WindowIcon,
} from './icons.tsx';

/** The pages of the app. The navigation and the command palette show the same ones, each area only to users who may use it. */
export type Place = {
  readonly to: NonNullable<LinkProps['to']>;
  readonly label: string;
  readonly icon: (props: { size?: number }) => ReactNode;
  /** The name in the palette, where the area is not shown. Default: the label. */
  readonly name?: string;
  /** More search words of the palette. */
  readonly words?: string;
  /** True: not marked as current on the pages below it. */
  readonly isExact?: boolean;
  /** Listed only while Environments are switched on; its page says what to do when they are off. */
  readonly needsEnvironments?: true;
  /** The pages of one subject: one entry of the menu, and links above each of them. The entry leads to the first. */
  readonly parts?: readonly Place[];
};

export type Area = {
  /** Empty for the pages above all areas. */
  readonly title: string;
  readonly isForAdministrators?: true;
  readonly places: readonly Place[];
};

const areas: readonly Area[] = [
  { title: '', places: [{ to: '/', label: 'Start', icon: HomeIcon, words: 'overview home', isExact: true }] },
  {
    title: 'Publishing',
    places: [
      { to: '/sites', label: 'Sites', icon: GlobeIcon, words: 'upload publish deploy' },
      {
        to: '/environments',
        label: 'Environments',
        icon: StackIcon,
        words: 'branches deploys builds preview',
        needsEnvironments: true,
      },
    ],
  },
  {
    title: 'Settings',
    places: [
      {
        to: '/settings/keys',
        label: 'API keys',
        icon: KeyIcon,
        parts: [
          { to: '/settings/keys', label: 'API keys', icon: KeyIcon, words: 'tokens' },
          {
            to: '/settings/refusals',
            label: 'Why refused?',
            icon: HelpIcon,
            words: 'request id denied forbidden 401 403 429',
          },
        ],
      },
      {
        to: '/settings/agents',
        label: 'Agents',
        icon: SparkIcon,
        parts: [
          {
            to: '/settings/agents',
            label: 'My agents',
            icon: SparkIcon,
            words: 'mcp sessions approvals claude codex cursor code assistants',
          },
          { to: '/settings/clients', label: 'Connected clients', icon: PlugIcon, words: 'apps programs' },
          {
            to: '/settings/connections',
            label: 'MCP connections',
            icon: SocketIcon,
            words: 'external mcp servers accounts tools',
          },
        ],
      },
    ],
  },
  {
    title: 'Administration',
    isForAdministrators: true,
    // Most used first.
    places: [
      {
        to: '/admin',
        label: 'Overview',
        icon: GaugeIcon,
        parts: [
          {
            to: '/admin',
            label: 'Overview',
            icon: GaugeIcon,
            words: 'charts requests refusals storage',
            isExact: true,
          },
          {
            to: '/admin/surfaces',
            label: 'Where to configure',
            icon: MapIcon,
            words: 'settings configuration map',
          },
        ],
      },
      {
        to: '/admin/service-keys',
        label: 'Keys',
        icon: RobotIcon,
        parts: [
          { to: '/admin/service-keys', label: 'Service keys', icon: RobotIcon, words: 'tokens automation' },
          { to: '/admin/user-keys', label: 'User keys', icon: CardIcon, words: 'tokens people personal' },
        ],
      },
      {
        to: '/admin/access-controls',
        label: 'Access controls',
        icon: SlidersIcon,
        words: 'key policy lifetime limits',
      },
      {
        to: '/admin/sites',
        label: 'Sites limits',
        icon: WindowIcon,
        words: 'quotas switch take down',
      },
      {
        to: '/admin/environments',
        label: 'Environment policy',
        icon: StackIcon,
        words: 'environments policy lifetime quotas builds metadata links',
      },
      {
        to: '/admin/agents',
        label: 'Agents',
        icon: SparkIcon,
        parts: [
          {
            to: '/admin/agents',
            label: 'Definitions',
            name: 'Agent definitions',
            icon: SparkIcon,
            words: 'agents mcp tools',
          },
          {
            to: '/admin/agents/sessions',
            label: 'Sessions',
            name: 'Agent sessions',
            icon: SparkIcon,
            words: 'agents review calls',
          },
          {
            to: '/admin/agents/models',
            label: 'Models',
            name: 'Models for agents',
            icon: SparkIcon,
            words: 'agents',
          },
          {
            to: '/admin/mcp',
            label: 'MCP',
            icon: SocketIcon,
            words: 'agents tools switch claude codex cursor code',
          },
          {
            to: '/admin/mcp/clients',
            label: 'Connected clients',
            name: 'Connected clients of everyone',
            icon: PlugIcon,
            words: 'agents mcp apps',
          },
          {
            to: '/admin/mcp/servers',
            label: 'External servers',
            name: 'External MCP servers',
            icon: SocketIcon,
            words: 'agents mcp tools',
          },
        ],
      },
      {
        to: '/admin/users',
        label: 'People',
        icon: PeopleIcon,
        parts: [
          { to: '/admin/users', label: 'Users', icon: PeopleIcon, words: 'accounts people roles' },
          { to: '/admin/groups', label: 'Groups', icon: TreeIcon, words: 'roles teams people' },
        ],
      },
      { to: '/admin/repositories', label: 'Repositories', icon: BranchIcon, words: 'git projects' },
      { to: '/admin/audit', label: 'Audit log', icon: ScrollIcon, words: 'events log export' },
    ],
  },
];

/** Pages that the bar above the menu leads to. */
export const pagesOfTheBar: readonly Place[] = [
  { to: '/settings/notices', label: 'Notices', icon: BellIcon, words: 'messages warnings expiry' },
  {
    to: '/settings/command-line',
    label: 'Command line',
    icon: TerminalIcon,
    words: 'cli terminal postern download sha256 pipeline',
  },
];

/** Whether the page at this path belongs to the entry. */
export function isAt({ to, isExact = false, parts }: Place, pathname: string): boolean {
  if (parts !== undefined) return parts.some((part) => isAt(part, pathname));
  return pathname === to || (!isExact && pathname.startsWith(`${to}/`));
}

/** Whether this person can use Environments here. Without a role, the server refuses the query. */
export function useHasEnvironments(): boolean {
  const { data: me } = useQuery(whoAmI);
  const { data: policy } = useQuery({ ...environmentPolicy, enabled: (me?.roles?.length ?? 0) > 0 });
  return policy?.enabled === true;
}

/** The areas that this person may use, with the pages that this installation has. */
export function useAreas(): readonly Area[] {
  const isAdministrator = useIsAdministrator();
  const hasEnvironments = useHasEnvironments();
  return areas
    .filter((area) => isAdministrator || area.isForAdministrators !== true)
    .map((area) => ({
      ...area,
      places: area.places.filter((place) => hasEnvironments || place.needsEnvironments !== true),
    }));
}
