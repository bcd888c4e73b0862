import { Button, Modal, Switch, Text } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Confirm } from '../../shell/confirm.tsx';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { accessFacts, type Environment, isRowOnly } from '../environment-words.ts';
import shared from '../../shell/page.module.css';
import { AccessDialog } from './access-dialog.tsx';
import type { Facts } from './facts.ts';

/** Settings: deploys, following the branch, who may open it, and the teardown. */
export function Settings(facts: Facts) {
  const { environment } = facts;
  const [dialog, setDialog] = useState<'access' | 'tear-down'>();
  const close = () => setDialog(undefined);
  return (
    <div className={shared['stack']}>
      {!isRowOnly(environment, facts.me) && <Choices {...facts} onAccess={() => setDialog('access')} />}
      <section className={shared['roomy']}>
        <div className={shared['row']}>
          <div>
            <h2>Tear down</h2>
            <p>It is no longer served, and everything that runs is removed. This cannot be undone.</p>
          </div>
          <Button variant="light" color="red" onClick={() => setDialog('tear-down')}>
            Tear it down
          </Button>
        </div>
      </section>
      <AccessDialog {...facts} isOpen={dialog === 'access'} onClose={close} />
      <TearDownDialog of={environment} isOpen={dialog === 'tear-down'} onClose={close} />
    </div>
  );
}

function Choices({ onAccess, ...facts }: Facts & { readonly onAccess: () => void }) {
  const { environment } = facts;
  return (
    <>
      <Flip
        {...facts}
        field="autoTrack"
        label="Follow the branch"
        description="Every new commit of the branch is deployed."
        said={environment.autoTrack ? 'It no longer follows its branch.' : 'It follows its branch.'}
      />
      <Flip
        {...facts}
        field="deployEnabled"
        label="Allow deploys"
        description="When off, deploys are paused, and the current version is still served."
        said={environment.deployEnabled ? 'Deploys are paused.' : 'Deploys are resumed.'}
      />
      <section className={shared['roomy']}>
        <div className={shared['row']}>
          <div>
            <h2>Who may open it</h2>
            <p>
              {accessFacts[environment.access]}. A change gives its services new URLs at once. Its link stays
              the same.
            </p>
          </div>
          <Button variant="default" onClick={onAccess}>
            Change who may open it
          </Button>
        </div>
      </section>
    </>
  );
}

type FlipProps = Facts & {
  readonly field: 'autoTrack' | 'deployEnabled';
  readonly label: string;
  readonly description: string;
  readonly said: string;
};

function Flip({ environment, field, label, description, said }: FlipProps) {
  const body: Schemas['ChangeEnvironmentRequest'] = { [field]: !environment[field] };
  const { run, error, isBusy } = useChange({
    act: () => unwrap(api.PATCH('/environments/{id}', { params: { path: { id: environment.id } }, body })),
    said,
    refresh: ['environments'],
  });
  return (
    <section className={shared['roomy']}>
      <Switch
        label={label}
        description={description}
        checked={environment[field]}
        disabled={isBusy}
        onChange={run}
      />
      {error !== undefined && <Problem error={error} />}
    </section>
  );
}

type DialogProps = { readonly of: Environment; readonly isOpen: boolean; readonly onClose: () => void };

function TearDownDialog({ of: { id, uuid, repository, branch }, isOpen, onClose }: DialogProps) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="Tear this Environment down?">
      <Confirm
        act={() => unwrap(api.DELETE('/environments/{id}', { params: { path: { id } } }))}
        said={`${uuid} is being torn down.`}
        refresh={['environments']}
        confirm="Tear it down"
        keep="Keep it"
        onClose={onClose}
      >
        <Text size="sm">
          <b>
            <bdi>{uuid}</bdi>
          </b>
          , which runs <bdi>{branch}</bdi> of {repository}, stops being served at once. Its processes and
          databases are removed, with everything they stored. The branch and its commits stay as they are.
          This cannot be undone.
        </Text>
      </Confirm>
    </Modal>
  );
}
