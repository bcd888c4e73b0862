import { Alert, Button, Textarea } from '@mantine/core';
import { type FormEvent, useRef, useState } from 'react';
import { api, dataOf } from '../../../api/client.ts';
import type { Schemas } from '../../../api/contract.ts';
import { Table } from '../../../lists/table.tsx';
import { Problem } from '../../../shell/problem.tsx';
import common from '../../admin.module.css';
import { claimsIn } from './id-token.ts';

/** Compares a pasted ID token with the rules of a key. The token stays in the browser: only its claims are sent. */
export function TryToken({ keyId }: { keyId: string }) {
  const [pasted, setPasted] = useState('');
  const [mistake, setMistake] = useState<string>();
  const [verdict, setVerdict] = useState<Schemas['TrustVerdict']>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);

  function change(text: string): void {
    setPasted(text);
    setMistake(undefined);
    setVerdict(undefined);
    setError(undefined);
  }

  async function compare(): Promise<void> {
    const read = claimsIn(pasted);
    if ('mistake' in read) {
      setMistake(read.mistake);
      return field.current?.focus();
    }
    setBusy(true);
    setError(undefined);
    try {
      const params = { path: { id: keyId } };
      setVerdict(await dataOf(api.POST('/tokens/{id}/trust/try', { params, body: read })));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  function submit(event: FormEvent): void {
    event.preventDefault();
    void compare();
  }

  return (
    <form className={common['stack']} onSubmit={submit}>
      <Textarea
        ref={field}
        label="ID token of a job"
        description="Or only its claims, as JSON. This page decodes the token and sends its claims alone: the token stays in your browser."
        data-autofocus
        radius="md"
        rows={5}
        autoComplete="off"
        // A spell checker may send the text to its maker.
        spellCheck={false}
        value={pasted}
        error={mistake}
        onChange={({ currentTarget }) => change(currentTarget.value)}
      />
      <div>
        <Button type="submit" loading={isBusy}>
          Compare with the rules
        </Button>
      </div>
      {error !== undefined && <Problem error={error} />}
      <div role="status">{verdict !== undefined && <Verdict of={verdict} />}</div>
    </form>
  );
}

function Verdict({ of: { accepted, failed } }: { of: Schemas['TrustVerdict'] }) {
  return (
    <div className={common['stack']}>
      <Alert
        color={accepted ? 'green' : 'red'}
        title={accepted ? 'A rule accepts these claims' : 'No rule accepts these claims'}
      >
        {!accepted &&
          'The table shows how they differ from the nearest rule. Change the job, or add a rule with the claims that were found. The audience, aud, is always the address of this server. '}
        Postern did not check the signature, the age, or whether the token was exchanged before.
      </Alert>
      {failed.length > 0 && (
        <Table
          caption="Claims that differ from the rule"
          columns={['Claim', 'Expected', 'Found']}
          isStale={false}
        >
          {failed.map(({ claim, expected, found }) => (
            <tr key={claim}>
              <th scope="row" className={common['name']}>
                <code>{claim}</code>
              </th>
              <td data-label="Expected" className="wrap">
                {expected}
              </td>
              <td data-label="Found" className="wrap">
                {found ?? <span className="quiet">absent, or not a text</span>}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </div>
  );
}
