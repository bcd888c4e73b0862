import { Alert, Button, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useBlocker } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import type { Schemas } from '../../api/contract.ts';
import { announce } from '../../shell/announce.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import {
  bodyOf,
  type Draft,
  type Field,
  firstDraft,
  mistakesIn,
  needsRepositories,
  type Policy,
  withSelection,
} from './draft.ts';
import { useKeyForm } from '../use-key-form.ts';
import { mistakesInRule } from '../trust/rule-draft.ts';
import type { Issuer } from '../trust/platforms.ts';
import { CredentialField } from './credential-field.tsx';
import { ExpiryField } from './expiry-field.tsx';
import { IssuedDialog } from './issued-dialog.tsx';
import styles from './new-key.module.css';
import type { Prefill } from './prefill.ts';
import { ReaderField } from './reader-field.tsx';
import { RepositoryField } from './repository-field.tsx';
import { RuleField } from './rule-field.tsx';
import { ScopeField } from './scope-field.tsx';
import { Summary } from './summary.tsx';
import { repositoriesNamed } from '../../api/queries.ts';

type FormProps = {
  policy: Policy & { clockOffsetMs: number };
  prefill: Prefill;
  /** Sends the request. The value in the answer stays in this form's memory. */
  onCreate: (body: ReturnType<typeof bodyOf>) => Promise<Schemas['IssuedKey']>;
  /** Called when the user has stored the value and the page has dropped it. */
  onStored: () => Promise<void>;
  /** For a service key, which can be federated. */
  forService?: {
    /** The issuers of the key policy. */
    readonly issuers: readonly Issuer[];
    /** Called when a federated key is created. */
    readonly onFederated: (id: string) => Promise<void>;
  };
};

/** The form for a new key. Input survives every refusal. The key's value lives only in this form's state until it is stored. */
export function NewKeyForm({ policy, prefill, onCreate, onStored, forService }: FormProps) {
  const isForService = forService !== undefined;
  const [typed, setTyped] = useState<Draft>(() => firstDraft(policy, prefill));
  const registry = useQuery(repositoriesNamed(''));
  const isRegistryEmpty = registry.data?.data.length === 0;
  const draft = withSelection(typed, policy, isRegistryEmpty);
  const [issued, setIssued] = useState<Schemas['IssuedKey']>();
  const name = useRef<HTMLInputElement>(null);
  useEffect(() => name.current?.focus({ preventScroll: true }), []);
  // While a value is shown that may not be stored yet, the browser asks before the user leaves the page.
  useBlocker({ shouldBlockFn: () => issued !== undefined, enableBeforeUnload: issued !== undefined });
  const now = useNow() + policy.clockOffsetMs;
  const { form, errors, refusal, isBusy, fix, onSubmit } = useKeyForm({
    mistakes: () => mistakesIn(draft, policy, now),
    async send() {
      const made = await onCreate(bodyOf(draft));
      if (made.credential === 'federated') {
        announce('The federated key is created.');
        return await forService?.onFederated(made.id);
      }
      setIssued(made);
      announce(
        made.sealed === undefined
          ? 'The key is created. Store its value now.'
          : 'The key is created. Deliver its sealed value now.',
      );
    },
  });

  function change(field: Field, part: Partial<Draft>): void {
    setTyped((before) => ({ ...before, ...part }));
    fix(field);
  }

  async function finish(): Promise<void> {
    // Before anything else, so that no later step can keep the value alive.
    flushSync(() => setIssued(undefined));
    await onStored();
  }

  return (
    <form ref={form} className={styles['card']} noValidate onSubmit={onSubmit}>
      <div data-field="name" className={styles['part']}>
        <TextInput
          label="Name"
          description="Who uses it, and for what. Lists, notices and the audit log show this name."
          placeholder="website-deploy"
          maxLength={200}
          autoComplete="off"
          ref={name}
          value={draft.name}
          error={errors.name}
          onChange={({ currentTarget }) => change('name', { name: currentTarget.value })}
        />
      </div>
      <ScopeField
        access={draft.access}
        allowed={policy.allowedScopes}
        error={errors.scopes}
        isForService={isForService}
        onChange={(access) => change('scopes', { access })}
      />
      {isForService && draft.access.sites === 'write' && (
        <Alert color="yellow" title="Its sites are public, and only this key can update them">
          Only this key can publish to the sites that it creates. When it is replaced, revoked or expired, no
          key can. For a private site, or one that lasts, use a personal key of its owner.
        </Alert>
      )}
      {needsRepositories(draft, policy) && (
        <RepositoryField
          draft={draft}
          policy={policy}
          isRegistryEmpty={isRegistryEmpty}
          error={errors.repositories}
          onChange={(part) => change('repositories', part)}
        />
      )}
      <ExpiryField
        expiry={draft.expiry}
        lifetime={policy.lifetime}
        now={now}
        error={errors.expiry}
        onChange={(expiry) => change('expiry', { expiry })}
      />
      {forService !== undefined && (
        <CredentialField
          credential={draft.credential}
          issuers={forService.issuers}
          onChange={(part) => change('rule', part)}
        />
      )}
      {draft.credential === 'federated' ? (
        <RuleField
          rule={draft.rule}
          issuers={forService?.issuers ?? []}
          error={errors.rule}
          mistakes={draft.rule === null || errors.rule === undefined ? {} : mistakesInRule(draft.rule)}
          onChange={(rule) => change('rule', { rule })}
        />
      ) : (
        <ReaderField
          publicKey={draft.publicKey}
          error={errors.publicKey}
          onChange={(publicKey) => change('publicKey', { publicKey })}
        />
      )}
      <div className={styles['end']}>
        <Summary draft={draft} now={now} isRegistryEmpty={isRegistryEmpty} />
        {refusal !== undefined && <Problem error={refusal} />}
        <Button type="submit" loading={isBusy} disabled={!policy.canCreate}>
          Create key
        </Button>
      </div>
      <IssuedDialog issued={issued} onStored={() => void finish()} />
    </form>
  );
}
