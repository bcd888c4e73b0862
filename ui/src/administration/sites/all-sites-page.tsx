import { Anchor, Badge, Button, Modal, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { WindowIcon } from '../../shell/icons.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { PageHead, Tools } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import { Table } from '../../lists/table.tsx';
import common from '../admin.module.css';
import { bytesInWords } from '../../shell/bytes.ts';
import { countOf } from '../../shell/count.ts';
import { publicSites } from '../queries.ts';
import { type ListSearch, turnedTo } from '../search.ts';
import { PutBack, type Stopping, TakeDown } from './site-steps.tsx';
import { Storage } from './storage.tsx';
import { StoppedSites } from './stopped-sites.tsx';
import styles from './sites.module.css';
import { focusIfLost } from '../../shell/focus.ts';

const route = getRouteApi('/administration/admin/sites/all');

/** Public sites, sites that were taken down, and storage by owner. Private sites are not listed. */
export function AllSitesPage() {
  const navigate = route.useNavigate();
  const shown = route.useSearch();
  const { search = '', page = 1 } = shown;
  const found = useQuery(
    publicSites({ visibility: 'public', page, limit: 20, ...(search === '' ? {} : { search }) }),
  );
  const [stopping, setStopping] = useState<Stopping>();
  const [resuming, setResuming] = useState<string>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow();
  const show = (part: ListSearch) => void navigate({ search: turnedTo(shown, part), replace: true });
  const done = () => focusIfLost(heading.current);
  return (
    <>
      <Anchor component={Link} to="/admin/sites" size="sm">
        ← Sites limits
      </Anchor>
      <PageHead
        title="All sites"
        intro="Everyone’s public sites. The role admin does not open private sites, but you can take one down by its id."
        heading={heading}
      />
      <Storage />
      <ById onChosen={(id) => setStopping({ id, name: null })} />
      <StoppedSites now={now} onPutBack={setResuming} />
      <Tools>
        <SearchField
          label="Search public sites"
          placeholder="Search by name, id or address"
          value={search}
          onChange={(text) => show({ search: text })}
        />
      </Tools>
      <List
        what="sites"
        found={found}
        empty={
          search === '' ? (
            <Empty picture={<WindowIcon size={28} />} title="No public sites">
              <Text size="sm" className="quiet">
                Sites that people publish for everyone appear here.
              </Text>
            </Empty>
          ) : (
            <NoMatch clear="Show all public sites" onClear={() => show({ search: '' })}>
              No public site matches “<bdi>{search}</bdi>”.
            </NoMatch>
          )
        }
      >
        {(all) => (
          <Table
            caption="Public sites"
            columns={['Name', 'Owner', 'Size', 'State', 'Published']}
            hasActions
            isStale={found.isPlaceholderData}
          >
            {all.map((site) => (
              <Row key={site.id} of={site} now={now} onTakeDown={setStopping} />
            ))}
          </Table>
        )}
      </List>
      <Modal
        opened={stopping !== undefined}
        title="Take this site down?"
        onClose={() => setStopping(undefined)}
      >
        {stopping !== undefined && (
          <TakeDown of={stopping} onClose={() => setStopping(undefined)} onDone={done} />
        )}
      </Modal>
      <Modal
        opened={resuming !== undefined}
        title="Reinstate this site?"
        onClose={() => setResuming(undefined)}
      >
        {resuming !== undefined && (
          <PutBack id={resuming} onClose={() => setResuming(undefined)} onDone={done} />
        )}
      </Modal>
    </>
  );
}

const stateWords: Readonly<Record<Schemas['Site']['status'], readonly [string, string]>> = {
  active: ['Live', 'green'],
  empty: ['No version yet', 'gray'],
  expired: ['Expired', 'gray'],
  taken_down: ['Taken down', 'red'],
  deleted: ['Deleted', 'gray'],
};

type RowProps = { of: Schemas['Site']; now: number; onTakeDown: (site: Stopping) => void };

function Row({ of: site, now, onTakeDown }: RowProps) {
  const [label, color] = stateWords[site.status];
  return (
    <tr>
      <th scope="row" className={common['name']}>
        <Anchor href={site.url} target="_blank" rel="noreferrer" inherit>
          <bdi>{site.name}</bdi>
        </Anchor>
        <code>{site.id}</code>
      </th>
      <td data-label="Owner" className="wrap">
        <span>
          <bdi>{site.owner.name ?? site.owner.id}</bdi>
          {site.owner.kind === 'service_key' && <span className="quiet"> (service key)</span>}
        </span>
      </td>
      <td data-label="Size">
        {bytesInWords(site.sizeBytes)}
        <span className={styles['quietLine']}>{countOf(site.fileCount, 'file')}</span>
      </td>
      <td data-label="State">
        <Badge color={color}>{label}</Badge>
      </td>
      <td data-label="Published">
        {site.version === null ? (
          <span className="quiet">Never</span>
        ) : (
          <Moment at={site.version.publishedAt} now={now} />
        )}
      </td>
      <td>
        {site.status !== 'taken_down' && site.status !== 'deleted' && (
          <Button
            variant="default"
            size="xs"
            aria-label={`Take down ${site.name}`}
            onClick={() => onTakeDown({ id: site.id, name: site.name })}
          >
            Take down
          </Button>
        )}
      </td>
    </tr>
  );
}

/** For a private site, or one that is not in the list: takes its link or its id. */
function ById({ onChosen }: { onChosen: (id: string) => void }) {
  const [text, setText] = useState('');
  const [, id] = /(?:^|\/s\/)([a-z0-9]{10})\/?$/.exec(text.trim()) ?? [];
  return (
    <form
      className={styles['byId']}
      onSubmit={(event) => {
        event.preventDefault();
        if (id !== undefined) onChosen(id);
      }}
    >
      <TextInput
        label="Take a site down by its link"
        description="The link …/s/{id} or the id alone; private sites, too. You do not see its content."
        placeholder="k3v9x0q2m7"
        autoComplete="off"
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <Button type="submit" variant="default" disabled={id === undefined}>
        Take down…
      </Button>
    </form>
  );
}
