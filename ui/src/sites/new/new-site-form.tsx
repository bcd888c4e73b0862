import { Alert, Button, Switch, TextInput } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';
import { PublishedNothing } from '../upload/published-nothing.tsx';
import type { UploadState } from '../upload/use-upload.ts';
import type { Draft, DraftErrors } from './draft.ts';
import { ExpiryField } from './expiry-field.tsx';
import styles from '../../shell/form.module.css';
import { VisibilityField } from './visibility-field.tsx';
import { useSitesNow } from '../sites-now.ts';

type FormProps = {
  readonly draft: Draft;
  readonly capabilities: Schemas['SiteCapabilities'];
  readonly errors: DraftErrors;
  /** Why it cannot be published now. */
  readonly unavailableReason: string | null;
  readonly state: UploadState;
  readonly onChange: (part: Partial<Draft>) => void;
  readonly onPublish: () => void;
  readonly onCheck: () => void;
};

export function NewSiteForm(props: FormProps) {
  const { draft, capabilities, errors, unavailableReason, state, onChange } = props;
  const now = useSitesNow();
  const canHave = capabilities.allowedVisibility.length > 0;
  return (
    <form
      className={styles['form']}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        props.onPublish();
      }}
    >
      <div className={styles['part']} data-field="name">
        <TextInput
          label="Name"
          description="Shown to you and in lists. The server generates the address."
          placeholder="Handbook"
          maxLength={100}
          autoComplete="off"
          value={draft.name}
          error={errors.name}
          onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
        />
      </div>
      <VisibilityField
        value={draft.visibility}
        capabilities={capabilities}
        error={errors.visibility}
        onChange={(visibility) => onChange({ visibility })}
      />
      <ExpiryField
        expiry={draft.expiry}
        ttl={capabilities.ttl}
        now={now}
        error={errors.expiry}
        onChange={(expiry) => onChange({ expiry })}
      />
      <div className={styles['part']}>
        <SpaSwitch checked={draft.spa} onChange={(spa) => onChange({ spa })} />
      </div>
      {!canHave && (
        <Alert color="yellow" m="md" title="You cannot create a site now">
          {Object.values(capabilities.visibilityReasons).join(' ')}
        </Alert>
      )}
      <div className={styles['end']}>
        <PublishedNothing state={state} />
        <Button type="submit" disabled={unavailableReason !== null || !canHave}>
          Publish
        </Button>
        <Button variant="default" disabled={unavailableReason !== null || !canHave} onClick={props.onCheck}>
          Check only
        </Button>
        <p>{unavailableReason ?? 'With “Check only” the server checks everything and keeps nothing.'}</p>
      </div>
    </form>
  );
}

export function SpaSwitch({ checked, onChange }: { checked: boolean; onChange: (spa: boolean) => void }) {
  return (
    <Switch
      label="An app that routes in the browser"
      description="Missing pages show index.html instead of a 404."
      checked={checked}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
  );
}
