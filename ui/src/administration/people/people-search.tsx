import { NoMatch } from '../../lists/empty.tsx';
import { Tools } from '../../lists/page-head.tsx';
import { SearchField } from '../../lists/search-field.tsx';

type SearchProps = { readonly search: string; readonly onChange: (search: string) => void };

/** Finds people by a part of their name or e-mail address. */
export function PeopleSearch({ search, onChange }: SearchProps) {
  return (
    <Tools>
      <SearchField
        label="Search by name or e-mail address"
        placeholder="Part of a name or e-mail address"
        value={search}
        onChange={onChange}
      />
    </Tools>
  );
}

export function NobodyLike({ search, onChange }: SearchProps) {
  return (
    <NoMatch clear="Show everyone" onClear={() => onChange('')}>
      No name or e-mail address matches “<bdi>{search}</bdi>”.
    </NoMatch>
  );
}
