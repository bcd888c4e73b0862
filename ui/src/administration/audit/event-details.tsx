import common from '../admin.module.css';
import { differences, type Tree } from '../documents/values.ts';
import styles from './audit.module.css';

/** The details of an event: before and after if it changed something, everything else as recorded. */
export function EventDetails({ of: details }: { of: Tree }) {
  const { before, after, ...rest } = details;
  const changes = isTree(after) ? differences(isTree(before) ? before : {}, after) : [];
  return (
    <>
      {changes.length > 0 && (
        <section className={common['card']}>
          <div className={common['head']}>
            <h2>What changed</h2>
          </div>
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
          <div className={styles['scroll']} tabIndex={0} role="region" aria-label="What changed">
            <table className={styles['changes']}>
              <thead>
                <tr>
                  <th scope="col">Field</th>
                  <th scope="col">Before</th>
                  <th scope="col">After</th>
                </tr>
              </thead>
              <tbody>
                {changes.map((one) => (
                  <tr key={one.path}>
                    <th scope="row">
                      <code>{one.path}</code>
                    </th>
                    <td>{inText(one.before)}</td>
                    <td>{inText(one.after)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      {Object.keys(rest).length > 0 && (
        <section className={common['card']}>
          <div className={common['head']}>
            <h2>Details</h2>
          </div>
          <dl className={common['facts']}>
            {Object.entries(rest).map(([name, value]) => (
              <div key={name} className={styles['detail']}>
                <dt>{name}</dt>
                <dd>{inText(value)}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function inText(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
