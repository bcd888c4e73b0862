import { PasswordInput, Select, Switch, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../../api/client.ts';
import type { Schemas } from '../../../api/contract.ts';
import { Problem } from '../../../shell/problem.tsx';
import { useChange } from '../../../shell/use-change.ts';
import { DialogForm } from '../../dialog-form.tsx';
import { wrongIn } from '../../wrong-in.ts';

type Server = Schemas['McpServer'];

type FormProps = {
  /** Without it, a new one. */
  readonly of?: Server;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

export const authWords: Readonly<Record<Server['auth'], string>> = {
  none: 'No sign-in',
  header: 'A value for the Authorization header',
  oauth: 'A sign-in at its authorization server',
};

export function ServerForm({ of: known, onClose, onDone }: FormProps) {
  const [slug, setSlug] = useState(known?.slug ?? '');
  const [name, setName] = useState(known?.name ?? '');
  const [url, setUrl] = useState(known?.url ?? '');
  const [auth, setAuth] = useState(known?.auth ?? 'oauth');
  const [enabled, setEnabled] = useState(known?.enabled ?? true);
  const [clientId, setClientId] = useState(known?.clientId ?? '');
  const [clientSecret, setClientSecret] = useState('');
  // The first secret of a client makes the present sign-in wait until an administrator accepts it.
  const isFirstSecret = clientSecret !== '' && known?.clientId !== clientId && known?.issuer !== null;
  const isOther = known !== undefined && (known.url !== url || known.auth !== auth || isFirstSecret);
  // Without a new id or secret nothing is sent: the server keeps the stored client, or removes it with the address that it is for.
  const keepsClient = clientSecret === '' && clientId === (known?.clientId ?? '');
  const client =
    clientId === '' || auth !== 'oauth'
      ? null
      : { clientId, ...(clientSecret === '' ? {} : { clientSecret }) };
  const rest = { name, url, auth, enabled, ...(keepsClient ? {} : { client }) };
  const { run, error, isBusy } = useChange({
    act: () =>
      known === undefined
        ? unwrap(api.POST('/config/mcp/servers', { body: { slug, ...rest } }))
        : unwrap(
            api.PATCH('/config/mcp/servers/{slug}', { params: { path: { slug: known.slug } }, body: rest }),
          ),
    said: known === undefined ? 'The server is added.' : 'Saved.',
    refresh: ['admin', 'servers'],
    onClose,
    onDone,
  });
  const wrong = wrongIn(error, 'slug');
  const isBeside = ['slug', 'name', 'url'].some((field) => wrong[field] !== undefined);
  return (
    <DialogForm
      send={known === undefined ? 'Add server' : isOther ? 'Save, and remove all connections' : 'Save'}
      isBusy={isBusy}
      onSend={run}
      onClose={onClose}
    >
      {known === undefined && (
        <TextInput
          label="Slug"
          description="The prefix of its tool names, such as tracker__search_issues. It cannot be changed."
          data-autofocus
          required
          maxLength={32}
          autoComplete="off"
          placeholder="tracker"
          value={slug}
          error={wrong['slug']}
          onChange={({ currentTarget }) => setSlug(currentTarget.value)}
        />
      )}
      <TextInput
        label="Name"
        required
        maxLength={100}
        autoComplete="off"
        value={name}
        error={wrong['name']}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <TextInput
        label="Address"
        description="The https address of its MCP endpoint. A new address removes all connections and accepted tools."
        required
        maxLength={500}
        autoComplete="off"
        placeholder="https://mcp.tracker.example/mcp"
        value={url}
        error={wrong['url']}
        onChange={({ currentTarget }) => setUrl(currentTarget.value)}
      />
      <Select
        label="How people connect"
        radius="md"
        allowDeselect={false}
        data={Object.entries(authWords).map(([value, label]) => ({ value, label }))}
        value={auth}
        onChange={(value) => {
          if (value === 'none' || value === 'header' || value === 'oauth') setAuth(value);
        }}
      />
      {auth === 'oauth' && (
        <>
          <TextInput
            label="Client id"
            description="Only if the operator of the server gave you one. Otherwise Postern registers itself."
            maxLength={500}
            autoComplete="off"
            value={clientId}
            onChange={({ currentTarget }) => setClientId(currentTarget.value)}
          />
          {clientId !== '' && (
            <PasswordInput
              label="Client secret"
              description="Stored encrypted and never shown. Leave it empty for a public client."
              maxLength={500}
              autoComplete="off"
              value={clientSecret}
              onChange={({ currentTarget }) => setClientSecret(currentTarget.value)}
            />
          )}
        </>
      )}
      <Switch
        label="The server is on"
        checked={enabled}
        onChange={({ currentTarget }) => setEnabled(currentTarget.checked)}
      />
      {error !== undefined && !isBeside && <Problem error={error} />}
    </DialogForm>
  );
}
