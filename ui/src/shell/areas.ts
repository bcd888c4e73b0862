import type { LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
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
  SlidersIcon,
  StackIcon,
  TreeIcon,
  WindowIcon,
} from './icons.tsx';

/** The pages of the app. The navigation and the command palette show the same ones, each area only to users who may use it. */
export type Place = {
  readonly to: NonNullable<LinkProps['to']>;
  readonly label: string;
  readonly icon: (props: { size?: number }) => ReactNode;
  /** Found by these in the palette, besides its name. */
  readonly words?: string;
  /** True: not marked as current on the pages below it. */
  readonly isExact?: boolean;
};

export type Area = {
  /** Empty: what stands above all areas. */
  readonly title: string;
  readonly isForAdministrators?: true;
  readonly places: readonly Place[];
};

const areas: readonly Area[] = [
  { title: '', places: [{ to: '/', label: 'Start', icon: HomeIcon, words: 'overview home', isExact: true }] },
  {
    title: 'Publishing',
    places: [{ to: '/sites', label: 'Sites', icon: GlobeIcon, words: 'upload publish deploy' }],
  },
  {
    title: 'Settings',
    places: [
      { to: '/settings/keys', label: 'API keys', icon: KeyIcon, words: 'tokens' },
      { to: '/settings/clients', label: 'Connected clients', icon: PlugIcon, words: 'apps command line' },
      { to: '/settings/notices', label: 'Notices', icon: BellIcon, words: 'messages warnings expiry' },
      {
        to: '/settings/refusals',
        label: 'Why refused?',
        icon: HelpIcon,
        words: 'request id denied forbidden 401 403 429',
      },
    ],
  },
  {
    title: 'Administration',
    isForAdministrators: true,
    // In the order of how often they are needed.
    places: [
      {
        to: '/admin',
        label: 'Overview',
        icon: GaugeIcon,
        words: 'charts requests refusals storage',
        isExact: true,
      },
      { to: '/admin/service-keys', label: 'Service keys', icon: RobotIcon, words: 'tokens automation' },
      { to: '/admin/user-keys', label: 'User keys', icon: CardIcon, words: 'tokens people personal' },
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
        label: 'Environments',
        icon: StackIcon,
        words: 'policy lifetime quotas builds metadata links',
      },
      { to: '/admin/users', label: 'Users', icon: PeopleIcon, words: 'accounts people roles' },
      { to: '/admin/groups', label: 'Groups', icon: TreeIcon, words: 'roles teams' },
      { to: '/admin/repositories', label: 'Repositories', icon: BranchIcon, words: 'git projects' },
      { to: '/admin/audit', label: 'Audit log', icon: ScrollIcon, words: 'events log export' },
      {
        to: '/admin/surfaces',
        label: 'Where to configure',
        icon: MapIcon,
        words: 'settings configuration map',
      },
    ],
  },
];

export function areasFor(isAdministrator: boolean): readonly Area[] {
  return areas.filter((area) => isAdministrator || area.isForAdministrators !== true);
}
