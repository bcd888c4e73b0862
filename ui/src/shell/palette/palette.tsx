import '@mantine/spotlight/styles.css';
import { createSpotlight, Spotlight } from '@mantine/spotlight';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { useIsAdministrator } from '../../api/queries.ts';
import { searchTextFrom } from '../../lists/search-text.ts';
import { type Area, pagesOfTheBar, type Place, useAreas, useHasEnvironments } from '../areas.ts';
import {
  BookIcon,
  HelpIcon,
  KeyIcon,
  PlusIcon,
  ScrollIcon,
  SearchIcon,
  StackIcon,
  UploadIcon,
} from '../icons.tsx';
import { foundEnvironments, foundKeys, foundSites } from './found.ts';
import styles from './palette.module.css';

const [store, spotlight] = createSpotlight();

type Entry = {
  readonly id: string;
  readonly group: string;
  readonly label: string;
  readonly detail?: string;
  readonly words?: string;
  readonly icon: ReactNode;
  readonly address: string;
};

/** Goes to any page that the user may see, and finds the user's keys, sites and Environments by name. The server searches. */
export function Palette({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const [text, setText] = useState('');
  const navigate = useNavigate();
  const { entries, isLooking } = useEntries(text);
  useEffect(() => {
    if (isOpen) spotlight.open();
    else spotlight.close();
  }, [isOpen]);

  function go(address: string): void {
    onClose();
    // The reference is a page of the server's own.
    if (address.startsWith('/api/')) location.assign(address);
    else void navigate({ href: address });
  }

  return (
    <Spotlight.Root
      store={store}
      query={text}
      onQueryChange={(next) => setText(searchTextFrom(next))}
      onSpotlightClose={onClose}
      shortcut={null}
      lockScroll={false}
      transitionProps={{ duration: 0 }}
      radius="lg"
      scrollable
      maxHeight={420}
      attributes={{ content: { 'aria-label': 'Go to' } }}
    >
      <Spotlight.Search
        placeholder="Go to a page, or find a key, a site or an Environment"
        aria-label="Go to a page, a key, a site or an Environment"
        leftSection={<SearchIcon />}
      />
      <Spotlight.ActionsList aria-label="Results" className={styles['list'] ?? ''}>
        {[...new Set(entries.map(({ group }) => group))].map((group) => (
          <Spotlight.ActionsGroup key={group} label={group}>
            {entries
              .filter((entry) => entry.group === group)
              .map((entry) => (
                <Spotlight.Action key={entry.id} onClick={() => go(entry.address)}>
                  <span className={styles['entry']}>
                    {entry.icon}
                    <bdi className={styles['label']}>{entry.label}</bdi>
                    {entry.detail !== undefined && <code className={styles['detail']}>{entry.detail}</code>}
                  </span>
                </Spotlight.Action>
              ))}
          </Spotlight.ActionsGroup>
        ))}
        {entries.length === 0 && (
          <Spotlight.Empty>{isLooking ? 'Searching…' : <NothingFound text={text.trim()} />}</Spotlight.Empty>
        )}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  );
}

function NothingFound({ text }: { text: string }) {
  return (
    <div role="status">
      <p className={styles['nothing']}>
        Nothing found for “<bdi>{text}</bdi>”
      </p>
      <p className={styles['hint']}>
        Search for pages by any of their words, and for your keys, sites and Environments by a part of the
        name. Try fewer letters.
      </p>
    </div>
  );
}

function useEntries(text: string): { entries: readonly Entry[]; isLooking: boolean } {
  const isAdministrator = useIsAdministrator();
  const [search] = useDebouncedValue(text.trim(), 200);
  const keys = useQuery(foundKeys(search));
  const sites = useQuery(foundSites(search));
  const areas = useAreas();
  const hasEnvironments = useHasEnvironments();
  const environments = useQuery({ ...foundEnvironments(search), enabled: hasEnvironments && search !== '' });
  const fits = ({ label, words = '' }: Entry) => {
    const names = wordsIn(`${label} ${words}`);
    return wordsIn(text).every((asked) => names.some((name) => name.startsWith(asked)));
  };
  const places = [
    ...requestEntries(text.trim(), isAdministrator),
    ...[...actions, ...(hasEnvironments ? [createEnvironment] : []), ...pages(areas)].filter(fits),
  ];
  if (search === '') return { entries: places, isLooking: false };
  return {
    entries: [
      ...places,
      ...(keys.data ?? []).map(keyEntry),
      ...(sites.data ?? []).map(siteEntry),
      ...(environments.data ?? []).map(environmentEntry),
    ],
    isLooking: keys.isFetching || sites.isFetching || environments.isFetching,
  };
}

function wordsIn(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

const actions: readonly Entry[] = [
  {
    id: 'new-key',
    group: 'Do',
    label: 'Create a key',
    words: 'new token',
    icon: <PlusIcon />,
    address: '/settings/keys/new',
  },
  {
    id: 'upload',
    group: 'Do',
    label: 'Upload a site',
    words: 'new publish',
    icon: <UploadIcon />,
    address: '/sites/new',
  },
];

const createEnvironment: Entry = {
  id: 'new-environment',
  group: 'Do',
  label: 'Create an Environment',
  words: 'new branch deploy build',
  icon: <StackIcon />,
  address: '/environments/new',
};

function pages(areas: readonly Area[]): Entry[] {
  const entry = ({ to, label, icon: Icon, words = '' }: Place, around = '') => ({
    id: to,
    group: 'Go to',
    label,
    words: `${around} ${words}`,
    icon: <Icon />,
    address: to,
  });
  const ours = areas.flatMap(({ title, places }) =>
    places.flatMap((place) =>
      (place.parts ?? [place]).map((one) =>
        // A label that is short in the menu is shown in full here.
        entry({ ...one, label: one.name ?? one.label }, title),
      ),
    ),
  );
  return [
    ...ours,
    ...pagesOfTheBar.map((place) => entry(place)),
    {
      id: 'reference',
      group: 'Go to',
      label: 'API reference',
      words: 'documentation routes',
      icon: <BookIcon />,
      address: '/api/v2/docs',
    },
  ];
}

/** A pasted request id leads to the explanation of that request. */
function requestEntries(text: string, isAdministrator: boolean): Entry[] {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return [];
  const why = {
    id: 'why-refused',
    group: 'This request',
    label: 'Why was it refused?',
    detail: text,
    icon: <HelpIcon />,
    address: `/settings/refusals?requestId=${text}`,
  };
  const auditLog = {
    id: 'request-audit-log',
    group: 'This request',
    label: 'Its events in the audit log',
    detail: text,
    icon: <ScrollIcon />,
    address: `/admin/audit?requestId=${text}`,
  };
  return isAdministrator ? [why, auditLog] : [why];
}

function keyEntry({ id, name }: { id: string; name: string }): Entry {
  return {
    id,
    group: 'My keys',
    label: name,
    detail: id,
    icon: <KeyIcon />,
    address: `/settings/keys/${id}`,
  };
}

function siteEntry({ id, name }: { id: string; name: string }): Entry {
  return { id, group: 'My sites', label: name, icon: <UploadIcon />, address: `/sites/${id}` };
}

function environmentEntry({ id, uuid, branch }: { id: string; uuid: string; branch: string }): Entry {
  return {
    id,
    group: 'My Environments',
    label: uuid,
    detail: branch,
    icon: <StackIcon />,
    address: `/environments/${id}`,
  };
}
