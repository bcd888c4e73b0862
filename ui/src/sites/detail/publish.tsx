import { Alert, Anchor, Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { Link } from '@tanstack/react-router';
import { CiJobs } from '../../shell/ci-jobs.tsx';
import { Command } from '../../shell/command.tsx';
import { Problem } from '../../shell/problem.tsx';
import { deployFolder } from '../../shell/snippets.ts';
import { SpaSwitch } from '../new/new-site-form.tsx';
import { capabilities } from '../queries.ts';
import { Curl, Result } from '../result.tsx';
import shared from '../../shell/page.module.css';
import { arrived, letGo } from '../upload/carried.ts';
import { DropArea } from '../upload/drop-area.tsx';
import { DropTarget } from '../upload/drop-target.tsx';
import { UploadFailure } from '../upload/failure.tsx';
import type { Picked } from '../upload/picked.ts';
import { PickedCard } from '../upload/picked-card.tsx';
import { check } from '../upload/precheck.ts';
import { UploadProgress } from '../upload/progress.tsx';
import { PublishedNothing } from '../upload/published-nothing.tsx';
import { UnfinishedNote } from '../upload/unfinished-note.tsx';
import { useUpload } from '../upload/use-upload.ts';
import type { Facts } from './facts.ts';

/** Publishes a new version of the site. The live version stays until the new one is complete. */
export function Publish({ site, actions }: Facts) {
  const limits = useQuery(capabilities);
  const [picked, setPicked] = useState<Picked | null>(arrived);
  const [spa, setSpa] = useState(site.spa);
  const { state, start, stop, reset } = useUpload();
  const checked = useMemo(
    () => (picked === null || limits.data === undefined ? null : check(picked, limits.data, false)),
    [picked, limits.data],
  );
  useEffect(letGo, []);
  const reason = actions.reasons.publish;

  function pick(next: Picked | null): void {
    setPicked(next);
    reset();
  }

  function begin(isCheckOnly: boolean): void {
    if (checked === null || checked.problems.length > 0) return;
    const digest = site.version?.digest ?? null;
    start({ checked, target: { kind: 'replace', siteId: site.id, digest, spa }, isCheckOnly });
  }

  if (state.kind === 'done') return <Result outcome={state.outcome} onAgain={() => pick(null)} />;
  if (state.kind === 'running') return <UploadProgress stage={state.stage} job={state.job} onStop={stop} />;
  if (reason !== null)
    return (
      <Alert color="yellow" title="You cannot publish to this site">
        {reason}
      </Alert>
    );
  if (limits.error !== null) return <Problem error={limits.error} onRetry={() => void limits.refetch()} />;
  if (limits.data === undefined)
    return <Skeleton height={240} radius="lg" aria-label="Loading" role="status" />;
  const canStart = checked !== null && checked.problems.length === 0;
  return (
    <div className={shared['stack']}>
      <DropArea says="Drop it to publish a new version" onPicked={pick} />
      {checked === null ? (
        <>
          <UnfinishedNote siteId={site.id} />
          <DropTarget upload={limits.data.upload} onPicked={pick} />
        </>
      ) : (
        <PickedCard checked={checked} onPicked={pick} />
      )}
      {state.kind === 'failed' && (
        <UploadFailure error={state.error} job={state.job} onAgain={() => begin(state.job.isCheckOnly)} />
      )}
      <section className={shared['card']}>
        <SpaSwitch checked={spa} onChange={setSpa} />
      </section>
      <PublishedNothing state={state} />
      <div className={shared['actions']}>
        <Button disabled={!canStart} onClick={() => begin(false)}>
          Publish this version
        </Button>
        <Button variant="default" disabled={!canStart} onClick={() => begin(true)}>
          Check only
        </Button>
      </div>
      <section className={shared['card']}>
        <h2>From a script</h2>
        <p className={shared['hint']}>
          With a key that has <code>sites:write</code> in the variable <code>POSTERN_KEY</code>:
        </p>
        <Command text={deployFolder({ siteId: site.id })} of="publish with the command line" />
        <p className={shared['hint']}>
          <Anchor component={Link} to="/settings/command-line" size="sm" underline="always">
            Get the command line
          </Anchor>
          , or use curl:
        </p>
        <Curl siteId={site.id} />
        <CiJobs siteId={site.id} />
      </section>
    </div>
  );
}
