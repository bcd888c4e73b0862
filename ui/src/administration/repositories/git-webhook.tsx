import { Alert, Button, Checkbox, Group, Modal, Text } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { CopyField } from '../../sites/copy-field.tsx';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';
import { paramsOf } from './repository-form.tsx';

type NewWebhook = Schemas['RepositoryWebhookSecret'];

/** How the git server notifies Postern of a push. The secret is shown once, so it can only be replaced or removed. */
export function GitWebhook({ of: { fullName, webhook } }: { of: Schemas['Repository'] }) {
  const [step, setStep] = useState<'create' | 'remove'>();
  const [shown, setShown] = useState<NewWebhook>();
  const now = useNow();
  const close = () => setStep(undefined);
  const params = { path: paramsOf(fullName) };
  return (
    <section className={common['card']} aria-labelledby="webhook">
      <div className={common['head']}>
        <h2 id="webhook">Webhook</h2>
      </div>
      <Text size="sm" mb="sm">
        {webhook === null ? (
          'None. Postern reads the branches every minute. With a webhook, it deploys a push within seconds.'
        ) : (
          <>
            Its secret was created <Moment at={webhook.setAt} now={now} />. Postern reads the branches at each
            push, and every minute.
          </>
        )}
      </Text>
      <div className={common['buttons']}>
        <Button variant="default" onClick={() => setStep('create')}>
          {webhook === null ? 'Create a webhook' : 'Replace the secret'}
        </Button>
        {webhook !== null && (
          <Button variant="default" onClick={() => setStep('remove')}>
            Remove the webhook
          </Button>
        )}
      </div>
      <Modal
        opened={step === 'create'}
        title={webhook === null ? 'Create a webhook' : 'Replace the secret?'}
        onClose={close}
      >
        <Confirm
          act={async () => {
            const created = await unwrap(api.POST('/repositories/{owner}/{name}/webhook', { params }));
            setShown(created.data);
          }}
          said="The secret is created."
          refresh={['admin', 'repositories']}
          confirm={webhook === null ? 'Create the secret' : 'Replace the secret'}
          keep="Cancel"
          isHarmless={webhook === null}
          onClose={close}
        >
          <Text size="sm">
            {webhook === null
              ? 'Postern creates a secret. You then store it, with an address, in the settings of the repository at GitHub or GitLab.'
              : 'Postern refuses webhooks with the old secret from then on, until you store the new one at the git server.'}
          </Text>
        </Confirm>
      </Modal>
      <Modal opened={step === 'remove'} title="Remove the webhook?" onClose={close}>
        <Confirm
          act={() => unwrap(api.DELETE('/repositories/{owner}/{name}/webhook', { params }))}
          said="The webhook is removed."
          refresh={['admin', 'repositories']}
          confirm="Remove the webhook"
          keep="Keep it"
          onClose={close}
        >
          <Text size="sm">
            Postern will then check the branches only once a minute. Remove the webhook at the git server too.
          </Text>
        </Confirm>
      </Modal>
      <Modal
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        closeOnEscape={false}
        closeOnClickOutside={false}
        withCloseButton={false}
        size="lg"
        title="Store the webhook at the git server now"
      >
        {shown !== undefined && <ShownOnce of={shown} onStored={() => setShown(undefined)} />}
      </Modal>
    </section>
  );
}

function ShownOnce({ of: { url, secret }, onStored }: { of: NewWebhook; onStored: () => void }) {
  const [isStored, setStored] = useState(false);
  return (
    <div className={common['stack']}>
      <Alert color="yellow">The secret is shown only once.</Alert>
      <CopyField label="Address" value={url} />
      <CopyField label="Secret" value={secret} />
      <Text size="sm" component="div">
        <ul className={common['list']}>
          <li>
            GitHub: Settings → Webhooks → Add webhook. “Payload URL” is the address. Select only the push
            event.
          </li>
          <li>
            GitLab: Settings → Webhooks → Add new webhook. “Secret token” is the secret. Select “Push events”.
          </li>
        </ul>
      </Text>
      <Group justify="space-between">
        <Checkbox
          label="I have stored both"
          checked={isStored}
          onChange={({ currentTarget }) => setStored(currentTarget.checked)}
        />
        <Button disabled={!isStored} onClick={onStored}>
          Done
        </Button>
      </Group>
    </div>
  );
}
