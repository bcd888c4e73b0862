import type { DocumentProps } from './document-api.ts';
import { entriesInWords, fieldsOf, nameOf, valueInWords } from './fields.ts';
import styles from './documents.module.css';
import type { Difference } from './values.ts';

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
              <ListChange before={entriesInWords(field, before)} after={entriesInWords(field, after)} />
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

/** The entries that were added to a list and removed from it. */
function ListChange({ before, after }: { before: readonly string[]; after: readonly string[] }) {
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
      {gone.length + come.length === 0 && 'reordered'}
    </span>
  );
}
