import { Anchor, Badge } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Schemas } from '../../api/contract.ts';
import { NoMatch } from '../../lists/empty.tsx';
import { PageHead, Tools } from '../../lists/page-head.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import { surfaces } from '../queries.ts';
import styles from './surfaces-page.module.css';

type Surface = Schemas['ConfigurationSurface'];

const route = getRouteApi('/administration/admin/surfaces');

/** “I want to change this. Who owns it, and where is it done?” */
export function SurfacesPage() {
  const navigate = route.useNavigate();
  const { search = '' } = route.useSearch();
  const found = useQuery({ ...surfaces, select: (all) => all.filter((one) => matches(one, search)) });
  const show = (text: string) =>
    void navigate({ search: text === '' ? {} : { search: text }, replace: true });
  return (
    <>
      <PageHead
        title="Where to configure"
        intro="Every setting has one owner and one place to change it. Look here first."
      />
      <Tools>
        <SearchField
          label="Search"
          placeholder="What do you want to change?"
          value={search}
          onChange={show}
        />
      </Tools>
      <List
        what="the map"
        found={found}
        empty={
          <NoMatch clear="Show all settings" onClear={() => show('')}>
            No setting matches “<bdi>{search}</bdi>”. A setting that is not listed cannot be changed in
            another way. Ask the operator of this installation.
          </NoMatch>
        }
      >
        {(items) => (
          <Table caption="Configuration surfaces" columns={['Change', 'Owner', 'Where']} isStale={false}>
            {items.map((one) => (
              <Row key={one.id} of={one} />
            ))}
          </Table>
        )}
      </List>
    </>
  );
}

function matches({ change, owner, note, places }: Surface, search: string): boolean {
  const text = [change, owner, note, ...places.flatMap(({ title, address }) => [title, address])].join(' ');
  const words = search.toLowerCase().split(/\s+/);
  return words.every((word) => text.toLowerCase().includes(word));
}

function Row({ of: { change, owner, note, isHere, places } }: { of: Surface }) {
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
          <Badge color="gray">Outside Postern</Badge>
        )}
      </td>
    </tr>
  );
}

/** Documents are not served: a guide is named by its title and its file. */
function Place({ of: { kind, title, address, href } }: { of: Surface['places'][number] }) {
  return (
    <>
      {href === null ? (
        <span>{kind === 'document' ? `Documentation: ${title}` : title}</span>
      ) : (
        <Anchor href={href} size="sm">
          {title}
        </Anchor>
      )}
      {kind !== 'page' && <code>{address}</code>}
    </>
  );
}
