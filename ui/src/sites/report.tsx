import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../api/contract.ts';
import { Problem } from '../shell/problem.tsx';
import { changeInWords } from '../shell/bytes.ts';
import { countOf } from '../shell/count.ts';
import { versionReport } from './queries.ts';
import styles from './report.module.css';
import { FileWarnings, StartPageWarning } from './start-page.tsx';

type Report = Schemas['SiteVersionReport']['report'];

type ReportProps = { readonly siteId: string; readonly number: number };

/** The server's warnings about a version. With `canFix`, the user may choose a start page for the live version. */
export function VersionWarnings({ siteId, number, canFix = false }: ReportProps & { canFix?: boolean }) {
  // The report of the same version shows why it cannot be read.
  const { data } = useQuery(versionReport(siteId, number));
  if (data === undefined) return null;
  const live = canFix && data.isLive ? { siteId, number, digest: data.digest } : null;
  const { warnings } = data.report;
  const startPage = warnings.find(({ code }) => code === 'no_start_page');
  return (
    <>
      {startPage !== undefined && <StartPageWarning of={startPage} live={live} />}
      <FileWarnings of={warnings.filter((warning) => warning !== startPage)} />
    </>
  );
}

/** The changes of a version since the previous one, the errors in its pages, and its receipt. */
export function VersionReport({ siteId, number }: ReportProps) {
  const { data, error, refetch } = useQuery(versionReport(siteId, number));
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined)
    return <Skeleton height={120} radius="md" role="status" aria-label="Loading the report" />;
  const { report, receipt } = data;
  return (
    <div className={styles['report']}>
      <Changed report={report} />
      <Found
        title="Broken links"
        found={report.brokenLinks}
        fix="They answer 404. Fix the address, or publish the missing page."
      />
      <Found
        title="Addresses that work only elsewhere"
        found={report.absolutePaths}
        fix="They point to your own machine, or below a folder that the site does not have."
      />
      <Found
        title="Parts over plain http"
        found={report.mixedContent}
        fix="Browsers refuse them on a page that came by https. Use https addresses."
      />
      {isClean(report) && (
        <p className={styles['good']}>
          No broken links, no addresses on your own machine, no unencrypted http.
        </p>
      )}
      {!report.isComplete && (
        <p className="quiet">Not every page was checked, because the site is too large.</p>
      )}
      <details className={styles['receipt']}>
        <summary>Receipt</summary>
        <p>
          SHA-256 of what <code>sha256sum</code> prints for the files in the order of their names. If your
          machine prints the same value, the live version is identical to your files, byte for byte.
        </p>
        <code>{receipt}</code>
      </details>
    </div>
  );
}

function isClean(report: Report): boolean {
  return report.brokenLinks.length + report.absolutePaths.length + report.mixedContent.length === 0;
}

function Changed({ report: { against, added, changed, removed, sizeChange, leftOut } }: { report: Report }) {
  const notPublished = leftOut.reduce((sum, { count }) => sum + count, 0);
  return (
    <div>
      <p className={styles['sum']}>
        {against === null ? 'The first version: ' : `Against version ${against}: `}
        <b>{countOf(added.count, 'file')} added</b>, <b>{changed.count} changed</b>,{' '}
        <b>{removed.count} removed</b>, {changeInWords(sizeChange)}.
      </p>
      {notPublished > 0 && (
        <p className="quiet">
          Left out of the upload: {countOf(notPublished, 'entry', 'entries')}, by the rules{' '}
          {leftOut.map(({ rule }) => rule).join(', ')}.
        </p>
      )}
      {against !== null && (
        <>
          <Names title="Added" list={added} />
          <Names title="Changed" list={changed} />
          <Names title="Removed" list={removed} />
        </>
      )}
    </div>
  );
}

function Names({ title, list: { count, names } }: { title: string; list: Report['added'] }) {
  if (count === 0) return null;
  return (
    <details>
      <summary>
        {title}: {countOf(count, 'file')}
      </summary>
      <ul>
        {names.map((name) => (
          <li key={name}>
            <bdi>
              <code>{name}</code>
            </bdi>
          </li>
        ))}
      </ul>
      {count > names.length && <p className="quiet">and {count - names.length} more</p>}
    </details>
  );
}

function Found({ title, found, fix }: { title: string; found: Report['brokenLinks']; fix: string }) {
  if (found.length === 0) return null;
  return (
    <details className={styles['found']} open>
      <summary>
        {title}: {found.length === 100 ? '100 or more' : found.length}
      </summary>
      <p className="quiet">{fix}</p>
      <ul>
        {found.map(({ page, target }) => (
          <li key={`${page} ${target}`}>
            <bdi>
              <code>{page}</code>
            </bdi>{' '}
            to{' '}
            <bdi>
              <code>{target}</code>
            </bdi>
          </li>
        ))}
      </ul>
    </details>
  );
}
