import { Button, Switch, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, dataOf } from '../../api/client.ts';
import { queryClient } from '../../api/queries.ts';
import { announce } from '../../shell/announce.tsx';
import type { EnvironmentPolicy } from '../../shell/environment-policy.ts';
import { Problem } from '../../shell/problem.tsx';
import { previewOf } from '../queries.ts';
import { RepositorySelect } from '../repository-select.tsx';
import { AccessField } from '../access-field.tsx';
import { BranchSelect } from './branch-select.tsx';
import {
  accessShown,
  type Draft,
  type DraftErrors,
  firstDraft,
  followShown,
  hoursShown,
  leasesOffered,
  mistakesIn,
  newIdempotencyKey,
  requestOf,
} from './draft.ts';
import { LeaseField } from './lease-field.tsx';
import type { NewSearch } from './new-search.ts';
import { errorsFrom } from './refusals.ts';
import { NoRepository } from './no-repository.tsx';
import { PreviewCard } from './preview-card.tsx';
import formStyles from '../../shell/form.module.css';
import styles from './new.module.css';

/** Lets the user choose a branch, preview the Environment, and create it. The input survives every refusal. */
export function NewEnvironment({ policy, from }: { policy: EnvironmentPolicy; from: NewSearch }) {
  const [draft, setDraft] = useState<Draft>(() => firstDraft(from));
  const [errors, setErrors] = useState<DraftErrors>({});
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const key = useRef(newIdempotencyKey());
  const form = useRef<HTMLFormElement>(null);
  const navigate = useNavigate();
  const { data: preview } = useQuery(previewOf(draft.repository, draft.branch));
  const planned = preview?.planned ?? null;

  function change(part: Partial<Draft>): void {
    setDraft((before) => ({ ...before, ...part }));
    setErrors((before) => Object.fromEntries(Object.entries(before).filter(([field]) => !(field in part))));
    // Changed input makes this a new request.
    key.current = newIdempotencyKey();
  }

  function complain(found: DraftErrors): void {
    setErrors(found);
    const [first] = Object.keys(found);
    form.current
      ?.querySelector<HTMLElement>(
        `[data-field="${first}"] :is(input:checked, input:not([type=radio]), input)`,
      )
      ?.focus();
  }

  async function create(): Promise<void> {
    const mistakes = mistakesIn(draft);
    if (Object.keys(mistakes).length > 0) return complain(mistakes);
    setBusy(true);
    setProblem(undefined);
    try {
      const { id, uuid } = await dataOf(
        api.POST('/environments', { body: requestOf(draft, planned, policy, key.current) }),
      );
      announce(`The Environment ${uuid} is created. Its first deploy is queued.`);
      await queryClient.invalidateQueries({ queryKey: ['environments', 'list'] });
      await navigate({ to: '/environments/$id', params: { id } });
    } catch (refusal) {
      setBusy(false);
      const beside = errorsFrom(refusal);
      if (Object.keys(beside).length > 0) complain(beside);
      else setProblem(refusal);
    }
  }

  return (
    <form
      ref={form}
      className={formStyles['form']}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void create();
      }}
    >
      <div className={styles['part']}>
        <NoRepository />
        <div data-field="repository">
          <RepositorySelect
            label="Repository"
            placeholder="Search for a registered repository"
            required
            value={draft.repository === '' ? undefined : draft.repository}
            error={errors.repository}
            onChange={(repository = '') => change({ repository, branch: '' })}
          />
        </div>
        <div data-field="branch">
          <BranchSelect
            key={draft.repository}
            repository={draft.repository}
            value={draft.branch}
            error={errors.branch}
            onChange={(branch) => change({ branch })}
          />
        </div>
        {draft.branch !== '' && <PreviewCard repository={draft.repository} branch={draft.branch} />}
        <div data-field="autoTrack">
          <Switch
            label="Follow the branch"
            description="Every new commit of the branch is deployed."
            checked={followShown(draft, planned)}
            error={errors.autoTrack}
            onChange={({ currentTarget }) => change({ autoTrack: currentTarget.checked })}
          />
        </div>
      </div>
      <AccessField
        className={styles['part'] ?? ''}
        value={accessShown(draft, planned, policy)}
        allowed={policy.allowedAccess}
        error={errors.access}
        onChange={(access) => change({ access })}
      />
      <LeaseField
        hours={hoursShown(draft, planned, policy)}
        offered={leasesOffered(planned, policy)}
        policy={policy}
        error={errors.ttlHours}
        onChange={(ttlHours) => change({ ttlHours })}
      />
      <div className={styles['part']} data-field="name">
        <TextInput
          label="Name"
          description="Optional. 3 to 50 characters a–z, 0–9 and -. Without one, a name is made from the branch."
          maxLength={50}
          autoComplete="off"
          spellCheck={false}
          value={draft.name}
          error={errors.name}
          onChange={({ currentTarget }) => change({ name: currentTarget.value })}
        />
      </div>
      <div className={formStyles['end']}>
        <Button type="submit" loading={isBusy}>
          Create the Environment
        </Button>
        <p>
          It is built from the newest commit of the branch. You may have {policy.maxPerOwner} Environments at
          the same time.
        </p>
        {problem !== undefined && <Problem error={problem} />}
      </div>
    </form>
  );
}
