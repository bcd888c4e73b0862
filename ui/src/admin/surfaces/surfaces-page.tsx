import { Anchor, Badge, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../app/problem.tsx';
import { NoMatch, NoMatchLine } from '../../lists/empty.tsx';
import { PageHead, Tools } from '../../lists/page-head.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import { Table, TableLoading } from '../../lists/table.tsx';
import common from '../admin.module.css';
import { surfaces } from '../queries.ts';
import styles from './surfaces-page.module.css';

type Surface = Schemas['ConfigurationSurface'];

const route = getRouteApi('/administration/admin/surfaces');

/** “I want to change this. Who owns it, and where is it done?” */
export function SurfacesPage() {
  const navigate = route.useNavigate();
  const { search = '' } = route.useSearch();
  const { data, error, refetch } = useQuery(surfaces);
  const found = data?.filter((one) => matches(one, search)) ?? [];
  const show = (text: string) =>
    void navigate({ search: text === '' ? {} : { search: text }, replace: true });
  return (
    <>
      <PageHead
        title="Where to configure"
        intro="Everything that can be changed has one owner. Look here first; there is no second way round."
      />
      <Tools>
        <SearchField
          label="Search"
          placeholder="What do you want to change?"
          value={search}
          onChange={show}
        />
      </Tools>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <TableLoading what="the map" />}
      {data !== undefined && found.length === 0 && (
        <NoMatch>
          <NoMatchLine>
            Nothing on the map says “<bdi>{search}</bdi>”. What is not on it is not changed by other means:
            ask whoever runs this installation.
          </NoMatchLine>
          <Button variant="default" size="xs" onClick={() => show('')}>
            Show everything
          </Button>
        </NoMatch>
      )}
      {found.length > 0 && (
        <Table caption="Configuration surfaces" columns={['Change', 'Owner', 'Where']} isStale={false}>
          {found.map((one) => (
            <Row key={one.id} of={one} />
          ))}
        </Table>
      )}
    </>
  );
}

function matches({ change, owner, note, places }: Surface, search: string): boolean {
  const text = [change, owner, note, ...places.flatMap(({ title, address }) => [title, address])].join(' ');
  const words = search.toLowerCase().split(/\s+/);
  return words.every((word) => text.toLowerCase().includes(word));
}

function Row({ of: { change, owner, note, isHere, isOutside, places } }: { of: Surface }) {
  return (
    <tr>
      <th scope="row" className={styles['change']}>
        {change}
        <small>{note}</small>
      </th>
      <td data-label="Owner" className={styles['owner']}>
        {owner}
      </td>
      <td data-label="Where">
        {isHere ? (
          <ul className={styles['places']}>
            {places.map((place) => (
              <li key={place.address}>
                <Place of={place} />
              </li>
            ))}
          </ul>
        ) : (
          <Badge className={common['badge']} variant="light" color="gray" tt="none" fw={600}>
            {isOutside ? 'Outside Postern' : 'Not installed'}
          </Badge>
        )}
      </td>
    </tr>
  );
}

/** A document of the repository is named; there is nothing here that could show it. */
function Place({ of: { kind, title, address, href } }: { of: Surface['places'][number] }) {
  return (
    <>
      {href === null ? (
        title
      ) : (
        <Anchor href={href} size="sm">
          {title}
        </Anchor>
      )}
      {kind !== 'page' && <code>{address}</code>}
    </>
  );
}
