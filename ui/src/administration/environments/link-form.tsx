import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { DialogForm } from '../dialog-form.tsx';
import { wrongIn } from '../wrong-in.ts';
import { isLinkIconName, type LinkIconName, linkPictures } from '../../environments/link-icon.tsx';

type FormProps = {
  /** Without it, a new one. */
  readonly of?: Schemas['MetadataLink'];
  readonly onClose: () => void;
  readonly onDone: () => void;
};

export function LinkForm({ of: known, onClose, onDone }: FormProps) {
  const [text, setText] = useState(known?.text ?? '');
  const [icon, setIcon] = useState<LinkIconName>(known?.icon ?? 'link');
  const [link, setLink] = useState(known?.link ?? '');
  const body = { text, icon, link };
  const { run, error, isBusy } = useChange({
    act: () =>
      known === undefined
        ? unwrap(api.POST('/config/metadata', { body }))
        : unwrap(api.PATCH('/config/metadata/{id}', { params: { path: { id: known.id } }, body })),
    said: known === undefined ? 'The link is added.' : 'Saved.',
    refresh: ['admin', 'metadata'],
    onClose,
    onDone,
  });
  const wrong = wrongIn(error, 'text');
  const Picture = linkPictures[icon];
  return (
    <DialogForm
      send={known === undefined ? 'Add link' : 'Save'}
      isBusy={isBusy}
      onSend={run}
      onClose={onClose}
    >
      <TextInput
        label="Text"
        data-autofocus
        required
        maxLength={100}
        autoComplete="off"
        placeholder="Source code"
        value={text}
        error={wrong['text']}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <Select
        label="Icon"
        radius="md"
        allowDeselect={false}
        leftSection={<Picture />}
        data={Object.keys(linkPictures)}
        value={icon}
        onChange={(name) => {
          if (name !== null && isLinkIconName(name)) setIcon(name);
        }}
      />
      <TextInput
        label="Address"
        description={
          <>
            An http or https address. After its host it can contain <code>{'${environment.repository}'}</code>
            , and <code>branch</code>, <code>sha</code>, <code>id</code>, <code>name</code> and{' '}
            <code>url</code> in the same way. Each Environment shows its own values.
          </>
        }
        required
        maxLength={2_000}
        autoComplete="off"
        placeholder="https://git.example.com/${environment.repository}/tree/${environment.branch}"
        value={link}
        error={wrong['link']}
        onChange={({ currentTarget }) => setLink(currentTarget.value)}
      />
      {error !== undefined && wrong['text'] === undefined && wrong['link'] === undefined && (
        <Problem error={error} />
      )}
    </DialogForm>
  );
}
