import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { DialogForm } from '../dialog-form.tsx';
import { wrongIn } from '../wrong-in.ts';

type FormProps = {
  /** Without it, a new one. */
  readonly of?: Schemas['Repository'];
  readonly onClose: () => void;
  readonly onDone: () => void;
};

/** `owner/name` in the parts of an address. */
export function paramsOf(fullName: string): { owner: string; name: string } {
  const [owner = '', name = ''] = fullName.split('/');
  return { owner, name };
}

type Known = Schemas['Repository'] | undefined;

function secretBranchesOf(known: Known): string {
  return String(known?.environmentDefaults?.['secretBranches'] ?? '');
}

/** The other defaults stay. */
function withSecretBranches(known: Known, secretBranches: string) {
  const { secretBranches: _before, ...rest } = known?.environmentDefaults ?? {};
  return secretBranches === '' ? rest : { ...rest, secretBranches };
}

export function RepositoryForm({ of: known, onClose, onDone }: FormProps) {
  const [fullName, setFullName] = useState(known?.fullName ?? '');
  const [cloneUrl, setCloneUrl] = useState(known?.cloneUrl ?? '');
  const [defaultBranch, setBranch] = useState(known?.defaultBranch ?? 'main');
  const [secretBranches, setSecretBranches] = useState(secretBranchesOf(known));
  const isChanged = secretBranches !== secretBranchesOf(known);
  const body = {
    fullName: fullName.trim(),
    cloneUrl: cloneUrl.trim(),
    defaultBranch: defaultBranch.trim(),
    ...(isChanged && { environmentDefaults: withSecretBranches(known, secretBranches.trim()) }),
  };
  const { run, error, isBusy } = useChange({
    act: () =>
      known === undefined
        ? unwrap(api.POST('/repositories', { body }))
        : unwrap(
            api.PATCH('/repositories/{owner}/{name}', { params: { path: paramsOf(known.fullName) }, body }),
          ),
    said: known === undefined ? 'The repository is registered.' : 'Saved.',
    refresh: ['admin', 'repositories'],
    onClose,
    onDone,
  });
  const wrong = wrongIn(error, 'fullName');
  return (
    <DialogForm
      send={known === undefined ? 'Register' : 'Save'}
      isBusy={isBusy}
      onSend={run}
      onClose={onClose}
    >
      <TextInput
        label="Full name"
        description={known === undefined ? 'As on its git host.' : 'Keys stay bound to it under a new name.'}
        placeholder="acme/website"
        data-autofocus
        required
        autoComplete="off"
        value={fullName}
        error={wrong['fullName']}
        onChange={({ currentTarget }) => setFullName(currentTarget.value)}
      />
      <TextInput
        label="Address to clone from"
        description="By https or ssh, without a user name or password in it."
        placeholder="https://git.example.com/acme/website.git"
        required
        autoComplete="off"
        value={cloneUrl}
        error={wrong['cloneUrl']}
        onChange={({ currentTarget }) => setCloneUrl(currentTarget.value)}
      />
      <TextInput
        label="Default branch"
        required
        autoComplete="off"
        value={defaultBranch}
        error={wrong['defaultBranch']}
        onChange={({ currentTarget }) => setBranch(currentTarget.value)}
      />
      <TextInput
        label="Branches with secrets"
        description="Separated by commas. If empty, only the default branch gets the secrets of the repository."
        autoComplete="off"
        value={secretBranches}
        error={wrong['environmentDefaults']}
        onChange={({ currentTarget }) => setSecretBranches(currentTarget.value)}
      />
      {error !== undefined && Object.keys(wrong).length === 0 && <Problem error={error} />}
    </DialogForm>
  );
}
