import type { DocumentProps } from './document-api.ts';
import { entriesInWords, fieldsOf, nameOf, valueInWords } from './fields.ts';
import styles from './documents.module.css';
import { type Difference, sameValue } from './values.ts';

type Props = Pick<DocumentProps, 'sections'> & { readonly of: readonly Difference[] };

/** The changed settings, one line each. */
export function Differences({ of: found, sections }: Props) {
  const fields = fieldsOf(sections);
  return (
    <ul className={styles['differences']}>
      {found.map(({ path, before, after }) => {
        const field = fields.find((one) => one.path === path);
        return (
          <li key={path}>
            <b>{nameOf(sections, path)}</b>
            {Array.isArray(before) && Array.isArray(after) ? (
              <ListChange
                before={entriesInWords(field, before)}
                after={entriesInWords(field, after)}
                isSameSet={isSameSet(before, after)}
              />
            ) : (
              <span>
                <del>{valueInWords(field, before)}</del> <span aria-hidden="true">→</span>{' '}
                <ins>{valueInWords(field, after)}</ins>
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function isSameSet(before: readonly unknown[], after: readonly unknown[]): boolean {
  const sorted = (entries: readonly unknown[]) => entries.map((one) => JSON.stringify(one)).toSorted();
  return sameValue(sorted(before), sorted(after));
}

type ListProps = {
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** Only the order differs. Otherwise, entries with the same text may differ in what the text leaves out. */
  readonly isSameSet: boolean;
};

/** The entries that were added to a list and removed from it. */
function ListChange({ before, after, isSameSet }: ListProps) {
  const gone = before.filter((one) => !after.includes(one));
  const come = after.filter((one) => !before.includes(one));
  return (
    <span>
      {gone.length > 0 && (
        <>
          without <del>{gone.join(', ')}</del>
        </>
      )}
      {gone.length > 0 && come.length > 0 && '; '}
      {come.length > 0 && (
        <>
          with <ins>{come.join(', ')}</ins>
        </>
      )}
      {gone.length + come.length === 0 && (isSameSet ? 'reordered' : 'entries changed')}
    </span>
  );
}
