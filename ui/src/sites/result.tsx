import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { Command } from '../shell/command.tsx';
import { CheckIcon } from '../shell/icons.tsx';
import { publishFolder } from '../shell/snippets.ts';
import { aheadFromNow, exactly } from '../shell/time.ts';
import { bytesInWords } from '../shell/bytes.ts';
import { countOf } from '../shell/count.ts';
import { CopyField } from './copy-field.tsx';
import { Qr } from './qr.tsx';
import { VersionReport, VersionWarnings } from './report.tsx';
import styles from './result.module.css';
import shared from '../shell/page.module.css';
import { addressOf, type Site } from './site-words.ts';
import type { Outcome } from './upload/job.ts';
import { useSitesNow } from './sites-now.ts';
import { OpenButton } from '../shell/open-button.tsx';

/** The result of an upload: its address, how to share it, the next steps, and the server's warnings. */
type ResultProps = {
  readonly outcome: Outcome;
  /** The page's own heading says what is live. */
  readonly isWholePage?: boolean;
  readonly onAgain: () => void;
};

export function Result({
  outcome: { site, contents, startPage },
  isWholePage = false,
  onAgain,
}: ResultProps) {
  const address = addressOf(site);
  const isPrivate = site.visibility === 'private';
  return (
    <div className={shared['stack']}>
      <section className={shared['card']} aria-labelledby="result">
        <div className={styles['top']}>
          <span className={styles['done']}>
            <CheckIcon size={20} />
          </span>
          <div>
            {isWholePage ? (
              <h2 id="result">Published</h2>
            ) : (
              <h2 id="result" tabIndex={-1} ref={beginHere}>
                <bdi>{site.name}</bdi> is live
              </h2>
            )}
            <p className="quiet">
              Version {site.version?.number} · {countOf(site.fileCount, 'file')},{' '}
              {bytesInWords(site.sizeBytes)}
              {contents !== null && ` · ${sentWords(contents)}`}
            </p>
            {startPage !== null && (
              <p className="quiet">
                <bdi>{startPage}</bdi> became <code>index.html</code>, the page that the address shows.
              </p>
            )}
          </div>
        </div>
        <div className={styles['where']}>
          <div className={shared['stack']}>
            <CopyField label={isPrivate ? 'Link' : 'Address'} value={address} />
            <div className={shared['actions']}>
              <OpenButton href={address}>Open the site</OpenButton>
              <Button
                variant="default"
                renderRoot={(props) => <Link to="/sites/$id" params={{ id: site.id }} {...props} />}
              >
                Go to its page
              </Button>
              <Button variant="default" onClick={onAgain}>
                Publish something else
              </Button>
            </div>
            <p className={styles['note']}>
              {isPrivate
                ? 'Only you can open it, in a browser where you are signed in.'
                : 'Everyone who has the address can open it.'}{' '}
              <Ends of={site} />
            </p>
          </div>
          {!isPrivate && <Qr text={address} label={`QR code of ${address}`} />}
        </div>
      </section>
      <section className={shared['card']}>
        <h2>What the server noticed</h2>
        {site.version !== null && (
          <div className={shared['stack']}>
            <VersionWarnings siteId={site.id} number={site.version.number} canFix />
            <VersionReport siteId={site.id} number={site.version.number} />
          </div>
        )}
      </section>
      <section className={shared['card']}>
        <h2>Publish again</h2>
        <p className={shared['hint']}>
          Drop the changed folder on the site’s page; only what changed is sent. From a script, with a key
          that has <code>sites:write</code>:
        </p>
        <Curl siteId={site.id} />
      </section>
    </div>
  );
}

/** A stable function, so that React calls it when the heading mounts, not at every render. */
function beginHere(heading: HTMLHeadingElement | null): void {
  heading?.focus({ preventScroll: true });
}

/** How a script publishes the next version. */
export function Curl({ siteId }: { siteId: string }) {
  return <Command text={publishFolder(siteId)} of="publish the next version" />;
}

function sentWords({ sent, had }: NonNullable<Outcome['contents']>): string {
  if (had === 0) return `${countOf(sent, 'file')} sent`;
  return sent === 0 ? 'nothing had to be sent' : `${countOf(sent, 'file')} sent, ${had} already there`;
}

function Ends({ of: { expiresAt } }: { of: Site }) {
  const now = useSitesNow();
  if (expiresAt === null) return 'It does not expire.';
  const at = Date.parse(expiresAt);
  return `It expires ${aheadFromNow(at, now)}, on ${exactly(at)}.`;
}
