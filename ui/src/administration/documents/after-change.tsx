import { Alert, Button, Group, Loader } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { announce } from '../../shell/announce.tsx';
import { CheckIcon } from '../../shell/icons.tsx';
import { Problem } from '../../shell/problem.tsx';
import { countOf } from '../../shell/count.ts';
import common from '../admin.module.css';
import type { Current, DocumentProps } from './document-api.ts';
import styles from './documents.module.css';
import { type Effect, hasFailed, readEffect } from './effect.ts';
import { fieldsOf, nameOf, valueInWords } from './fields.ts';
import { RevertDialog } from './revert-dialog.tsx';
import { differences, sameValue } from './values.ts';

/** A change that was made on this page. */
export type Made = { readonly before: Current; readonly now: Current };

type Props = DocumentProps &
  Made & {
    readonly onReverted: (now: Current) => void;
    readonly onStale: () => void;
    readonly onClose: () => void;
  };

/** Each process reads a changed document within this time, or refuses what depends on it (contract 2). */
const spreadsWithinMs = 1_000;

/** The steps after a change of a document: it spreads, the administrator verifies it, and can restore the previous version. */
export function AfterChange({ api, sections, before, now, onReverted, onStale, onClose }: Props) {
  const [isEverywhere, setEverywhere] = useState(false);
  const [isRestoring, setRestoring] = useState(false);
  const changed = differences(before.value, now.value);
  const heading = useRef<HTMLHeadingElement>(null);

  useEffect(() => {
    heading.current?.focus();
    const timer = setTimeout(() => {
      setEverywhere(true);
      announce('In force everywhere.');
    }, spreadsWithinMs);
    return () => clearTimeout(timer);
  }, []);

  return (
    <section className={styles['section']} aria-labelledby="after-change">
      <div className={styles['sectionHead']}>
        <h2 id="after-change" ref={heading} tabIndex={-1}>
          {countOf(changed.length, 'setting')} changed
        </h2>
      </div>
      <ol className={styles['steps']}>
        <Step isDone>
          Recorded: version {before.version} is in the history, with every value before the change.
        </Step>
        <Step isDone>Changed: version {now.version} is saved.</Step>
        <Step isDone={isEverywhere}>
          {isEverywhere ? 'In force everywhere.' : 'Spreading to every process, within a second.'}
        </Step>
        <li>
          <Verification api={api} sections={sections} changed={changed} isReady={isEverywhere} />
        </li>
      </ol>
      <Group justify="flex-end" gap="sm" pb="md">
        <Button variant="default" onClick={() => setRestoring(true)}>
          Restore version {before.version}
        </Button>
        <Button variant="default" onClick={onClose}>
          Done
        </Button>
      </Group>
      <RevertDialog
        api={api}
        sections={sections}
        current={now}
        to={isRestoring ? before : undefined}
        onReverted={onReverted}
        onStale={onStale}
        onClose={() => setRestoring(false)}
      />
    </section>
  );
}

function Step({ isDone, children }: { readonly isDone: boolean; readonly children: ReactNode }) {
  return (
    <li>
      {isDone ? (
        <span className={styles['done']}>
          <CheckIcon size={16} />
        </span>
      ) : (
        <Loader size={16} aria-hidden />
      )}
      <span>{children}</span>
    </li>
  );
}

type VerificationProps = DocumentProps & {
  readonly changed: ReturnType<typeof differences>;
  readonly isReady: boolean;
};

/** One check of what the change affects, when the administrator asks for it. */
function Verification({ api, sections, changed, isReady }: VerificationProps) {
  const [effect, setEffect] = useState<Effect>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function verify(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      setEffect(await readEffect(api, changed));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  return (
    <div className={common['stack']}>
      <Group gap="sm">
        <Button size="xs" loading={isBusy} disabled={!isReady} onClick={() => void verify()}>
          Verify
        </Button>
        <span>Reads the values that people get now and compares them with yours.</span>
      </Group>
      {error !== undefined && <Problem error={error} onRetry={() => void verify()} />}
      {effect !== undefined && <Found effect={effect} api={api} sections={sections} />}
    </div>
  );
}

function Found({ effect, api, sections }: DocumentProps & { readonly effect: Effect }) {
  const { seen, unseen } = effect;
  const fields = fieldsOf(sections);
  return (
    <div role="status" className={common['stack']}>
      {seen.length > 0 && (
        <Alert
          color={hasFailed(effect) ? 'red' : 'green'}
          title={hasFailed(effect) ? 'People get other values' : 'People get the new values'}
        >
          <ul className={common['list']}>
            {seen.map(({ path, after, found }) => {
              const inWords = (value: unknown) =>
                valueInWords(
                  fields.find((field) => field.path === path),
                  value,
                );
              return (
                <li key={path}>
                  {nameOf(sections, path)}: {inWords(found)}
                  {!sameValue(after, found) && `, and you saved ${inWords(after)}`}
                </li>
              );
            })}
          </ul>
          {hasFailed(effect) &&
            'Someone may have changed it again. See the history, or restore the previous version.'}
        </Alert>
      )}
      {unseen.length > 0 && (
        <Alert color="blue" title="Try it out">
          {api.trial} This shows the effect of:
          <ul className={common['list']}>
            {unseen.map(({ path }) => (
              <li key={path}>{nameOf(sections, path)}</li>
            ))}
          </ul>
        </Alert>
      )}
    </div>
  );
}
