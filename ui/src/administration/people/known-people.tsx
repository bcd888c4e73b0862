import { useQuery } from '@tanstack/react-query';
import type { ApiProblem } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import common from '../admin.module.css';
import { people } from '../queries.ts';
import { type ListSearch, turnedTo } from '../search.ts';
import { TextLink } from '../text-link.tsx';
import { ManagesAccounts } from './external-accounts.tsx';
import { LastSignIn } from './last-sign-in.tsx';
import { NobodyLike, PeopleSearch } from './people-search.tsx';

type KnownPeopleProps = {
  /** The error that names who manages the accounts. */
  readonly elsewhere: ApiProblem;
  readonly asked: ListSearch;
  readonly onAsk: (search: ListSearch) => void;
};

/** A read-only list of known people, shown if another provider manages the accounts. */
export function KnownPeople({ elsewhere, asked, onAsk }: KnownPeopleProps) {
  const { search = '', page = 1 } = asked;
  const found = useQuery(people({ page, limit: 20, ...(search === '' ? {} : { search }) }));
  const now = useNow();
  const show = (part: ListSearch) => onAsk(turnedTo(asked, part));
  return (
    <>
      <PageHead title="Users" intro="Everyone who has signed in here or owns a key." />
      <ManagesAccounts of={elsewhere} />
      <PeopleSearch search={search} onChange={(text) => show({ search: text })} />
      <List
        what="people"
        found={found}
        empty={<NobodyLike search={search} onChange={(text) => show({ search: text })} />}
      >
        {(items) => (
          <Table
            caption="People"
            columns={['Name', 'First seen', 'Last sign-in']}
            isStale={found.isPlaceholderData}
          >
            {items.map((person) => (
              <Row key={person.id} of={person} now={now} />
            ))}
          </Table>
        )}
      </List>
    </>
  );
}

function Row({ of: person, now }: { of: Schemas['KnownPerson']; now: number }) {
  return (
    <tr>
      <th scope="row" className={common['name']}>
        <TextLink to="/admin/users/$id" params={{ id: person.id }} inherit>
          <bdi>{person.name}</bdi>
        </TextLink>
        {person.email !== null && <bdi className={common['more']}>{person.email}</bdi>}
      </th>
      <td data-label="First seen">
        <Moment at={person.firstSeenAt} now={now} />
      </td>
      <td data-label="Last sign-in">
        <LastSignIn at={person.lastLoginAt} now={now} />
      </td>
    </tr>
  );
}
