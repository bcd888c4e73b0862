import { Button, Modal, Text } from '@mantine/core';
import { useState } from 'react';
import { api, dataOf } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { exactly } from '../../shell/time.ts';
import { CopyField } from '../copy-field.tsx';
import shared from '../../shell/page.module.css';
import { OpenButton } from '../../shell/open-button.tsx';

type PreviewProps = { readonly siteId: string; readonly number: number; readonly reason: string | null };

/** A separate address for one version, created on request: a site may have a hundred a day. */
export function Preview({ siteId, number, reason }: PreviewProps) {
  const [made, setMade] = useState<Schemas['SitePreview']>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function make(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      const params = { path: { id: siteId, number: String(number) } };
      setMade(await dataOf(api.POST('/sites/{id}/versions/{number}/preview', { params })));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  function close(): void {
    setMade(undefined);
    setError(undefined);
  }

  return (
    <>
      <Button
        size="xs"
        variant="default"
        loading={isBusy}
        disabled={reason !== null}
        aria-label={`Preview version ${number}`}
        onClick={() => void make()}
      >
        Preview
      </Button>
      <Modal
        opened={made !== undefined || error !== undefined}
        onClose={close}
        title={`Preview of version ${number}`}
      >
        {error !== undefined && <Problem error={error} />}
        {made !== undefined && (
          <div className={shared['stack']}>
            <CopyField label="Address of the preview" value={made.url} />
            <Text size="sm">
              It shows version {number} until {exactly(Date.parse(made.expiresAt))}, whichever version is
              live. Only people who may see the site can open it.
            </Text>
            <div className={shared['actions']}>
              <OpenButton href={made.url}>Open the preview</OpenButton>
            </div>
          </div>
        )}
      </Modal>
    </>
  );
}
