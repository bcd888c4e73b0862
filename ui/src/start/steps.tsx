import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useIsAdministrator, whoAmI } from '../api/queries.ts';
import { KeyIcon, PeopleIcon, ShieldIcon, StackIcon, TerminalIcon, UploadIcon } from '../shell/icons.tsx';
import { askWhoAmI, publishPage, readKey } from '../shell/snippets.ts';
import { useHasEnvironments } from '../shell/areas.ts';
import { itemsOf } from '../shell/count.ts';
import { firstKeys, myEnvironments, mySites, people, policyVersion } from './queries.ts';

export type Step = {
  readonly id: string;
  readonly title: string;
  readonly why: string;
  readonly icon: ReactNode;
  readonly isDone: boolean;
  readonly action?: { readonly label: string; readonly address: string };
  /** Commands to paste into a shell, one after the other. */
  readonly commands?: readonly { readonly text: string; readonly of: string }[];
};

/** The first steps, and whether each is done. The state comes from the server, once every query has answered. */
export function useSteps(): { steps: readonly Step[]; isKnown: boolean; isAnswered: boolean } {
  const me = useQuery(whoAmI);
  const isAdministrator = useIsAdministrator();
  const keys = useQuery(firstKeys);
  const sites = useQuery(mySites);
  const hasEnvironments = useHasEnvironments();
  const environments = useQuery({ ...myEnvironments, enabled: hasEnvironments });
  const known = useQuery({ ...people, enabled: isAdministrator });
  const policy = useQuery({ ...policyVersion, enabled: isAdministrator });
  const asked = [
    me,
    keys,
    sites,
    ...(hasEnvironments ? [environments] : []),
    ...(isAdministrator ? [known, policy] : []),
  ];
  const isClosed = sites.data?.kind === 'closed';
  const withKey: Step[] = [
    {
      id: 'key',
      title: 'Create an API key',
      why: 'A script needs one to act for you. Give it few rights and a short life; its value is shown once.',
      icon: <KeyIcon />,
      isDone: keys.data?.hasKey === true,
      action: {
        label: 'Create a key',
        address: `/settings/keys/new?name=first-script&scopes=${isClosed ? 'repos:read' : 'sites:write'}`,
      },
    },
    {
      id: 'call',
      title: 'Call the API with it',
      why: 'Put the value into the variable: the first line asks for it without showing it. Then ask the server who you are.',
      icon: <TerminalIcon />,
      isDone: keys.data?.wasUsed === true,
      commands: [
        { text: readKey, of: 'put the value into the variable' },
        { text: askWhoAmI(), of: 'call the API' },
      ],
    },
  ];
  const withSites: Step[] = [
    {
      id: 'site',
      title: 'Publish a site',
      why: 'A folder, a ZIP or a single page gets its own address. Publish in the browser, or from the shell:',
      icon: <UploadIcon />,
      isDone: sites.data?.kind === 'open' && sites.data.count > 0,
      action: { label: 'Upload a site', address: '/sites/new' },
      commands: [{ text: publishPage(), of: 'publish a site' }],
    },
  ];
  const withEnvironments: Step[] = [
    {
      id: 'environment',
      title: 'Run a branch',
      why: 'An Environment builds a branch of a registered repository and runs it at an address until its lease ends.',
      icon: <StackIcon />,
      isDone: (itemsOf(environments.data) ?? 0) > 0,
      action: { label: 'New Environment', address: '/environments/new' },
    },
  ];
  const forAdministrators: Step[] = [
    {
      id: 'people',
      title: 'Add users',
      why: 'Create accounts for other people. Each person has their own keys and sites.',
      icon: <PeopleIcon />,
      isDone: (known.data ?? 0) > 1,
      action: { label: 'Go to users', address: '/admin/users' },
    },
    {
      id: 'policy',
      title: 'Set the key policy',
      why: 'How long keys live, how many a person may have, and which scopes are allowed. The built-in policy allows every scope, all repositories and keys without an expiry.',
      icon: <ShieldIcon />,
      isDone: (policy.data ?? 0) > 0,
      action: { label: 'Go to access controls', address: '/admin/access-controls' },
    },
  ];
  return {
    steps: [
      ...withKey,
      ...(isClosed ? [] : withSites),
      ...(hasEnvironments ? withEnvironments : []),
      ...(isAdministrator ? forAdministrators : []),
    ],
    isKnown: asked.every(({ isSuccess }) => isSuccess),
    // Stays true once answered: a retry makes a failed query pending again, and the content would disappear.
    isAnswered: asked.every(({ isFetched }) => isFetched),
  };
}
