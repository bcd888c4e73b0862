import { useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Result } from '../result.tsx';
import { arrived, letGo } from '../upload/carried.ts';
import { DropArea } from '../upload/drop-area.tsx';
import { DropTarget } from '../upload/drop-target.tsx';
import { UploadFailure } from '../upload/failure.tsx';
import type { Picked } from '../upload/picked.ts';
import { PickedCard } from '../upload/picked-card.tsx';
import { check } from '../upload/precheck.ts';
import { UploadProgress } from '../upload/progress.tsx';
import { UnfinishedNote } from '../upload/unfinished-note.tsx';
import { useUpload } from '../upload/use-upload.ts';
import { type Draft, errorsFrom, firstDraft, mistakesIn, requestOf } from './draft.ts';
import { NewSiteForm } from './new-site-form.tsx';
import { NewSiteHead } from './new-site-head.tsx';
import { useSitesNow } from '../sites-now.ts';

type Capabilities = Schemas['SiteCapabilities'];

/** Lets the user choose files and visibility, and publish. The input survives every refusal. */
export function NewSite({ capabilities }: { capabilities: Capabilities }) {
  const [picked, setPicked] = useState<Picked | null>(arrived);
  const [draft, setDraft] = useState<Draft>(() => ({
    ...firstDraft(capabilities),
    name: arrived()?.name ?? '',
  }));
  const [mistakes, setMistakes] = useState({});
  const { state, start, stop, reset } = useUpload();
  const [hasPublished, setPublished] = useState(false);
  const now = useSitesNow();
  const checked = useMemo(
    () => (picked === null ? null : check(picked, capabilities, true)),
    [picked, capabilities],
  );
  useEffect(letGo, []);
  const navigate = useNavigate();
  const publishedId = state.kind === 'done' ? state.outcome.site.id : undefined;
  // The address is that of the site, so that a reload shows the site. The router masks only a new location, which the hash makes.
  useEffect(() => {
    if (publishedId === undefined) return;
    const mask = { to: '/sites/$id', params: { id: publishedId }, unmaskOnReload: true } as const;
    void navigate({ to: '/sites/new', hash: 'published', replace: true, resetScroll: false, mask });
  }, [publishedId, navigate]);

  function pick(next: Picked | null): void {
    setPicked(next);
    reset();
    // The folder's name is used until the user enters another.
    if (next !== null)
      setDraft((before) =>
        before.name === '' || before.name === picked?.name
          ? { ...before, name: next.name.slice(0, 100) }
          : before,
      );
  }

  function begin(isCheckOnly: boolean): void {
    if (checked === null || checked.problems.length > 0) return;
    const found = mistakesIn(draft, capabilities, now);
    setMistakes(found);
    if (Object.keys(found).length > 0) return;
    start({ checked, target: { kind: 'new', request: requestOf(draft, capabilities, now) }, isCheckOnly });
  }

  function again(): void {
    void navigate({ to: '/sites/new', replace: true });
    setPublished(true);
    pick(null);
    setDraft(firstDraft(capabilities));
  }

  if (state.kind === 'done') {
    const { name } = state.outcome.site;
    return (
      <>
        <NewSiteHead key="done" title={`${name} is live`} takesFocus>
          <bdi>{name}</bdi> is live
        </NewSiteHead>
        <Result outcome={state.outcome} isWholePage onAgain={again} />
      </>
    );
  }
  const head = (
    <NewSiteHead key="new" title="New site" takesFocus={hasPublished}>
      New site
    </NewSiteHead>
  );
  if (state.kind === 'running')
    return (
      <>
        {head}
        <UploadProgress stage={state.stage} job={state.job} onStop={stop} />
      </>
    );
  const fromServer = state.kind === 'failed' ? errorsFrom(state.error) : {};
  return (
    <>
      {head}
      <DropArea says="Drop it to publish it" onPicked={pick} />
      {checked === null ? (
        <>
          <UnfinishedNote />
          <DropTarget upload={capabilities.upload} onPicked={pick} />
        </>
      ) : (
        <PickedCard checked={checked} onPicked={pick} />
      )}
      {state.kind === 'failed' && Object.keys(fromServer).length === 0 && (
        <UploadFailure error={state.error} job={state.job} onAgain={() => start(state.job)} />
      )}
      <NewSiteForm
        draft={draft}
        capabilities={capabilities}
        errors={{ ...fromServer, ...mistakes }}
        unavailableReason={unavailableReasonOf(checked)}
        state={state}
        onChange={(part) => {
          setMistakes({});
          setDraft((before) => ({ ...before, ...part }));
        }}
        onPublish={() => begin(false)}
        onCheck={() => begin(true)}
      />
    </>
  );
}

function unavailableReasonOf(checked: ReturnType<typeof check> | null): string | null {
  if (checked === null) return 'Choose a folder or a file first.';
  return checked.problems.length > 0 ? 'Fix the problems above first.' : null;
}
