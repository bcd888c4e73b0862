import { Alert, Button, Modal } from '@mantine/core';
import { useBlocker } from '@tanstack/react-router';
import { useId, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { wrongFields } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import common from '../admin.module.css';
import { PersonName } from '../person-name.tsx';
import { Differences } from './differences.tsx';
import type { Made } from './after-change.tsx';
import type { Current, DocumentProps } from './document-api.ts';
import styles from './documents.module.css';
import { FieldRow } from './field-row.tsx';
import { type Field, fieldsOf, mistakesIn, nameOf, type Section } from './fields.ts';
import { Review } from './review.tsx';
import { at, type Difference, differences, rebased, type Tree, withAt } from './values.ts';

type Conflict = {
  readonly by: string | null;
  readonly theirs: readonly Difference[];
  readonly contested: readonly string[];
};

type EditorProps = DocumentProps & {
  readonly current: Current;
  readonly onMade: (made: Made) => void;
};

/** Edits the whole document. A save is sent only after a dry run, and the input survives every refusal. */
export function Editor({ api, sections, current, onMade }: EditorProps) {
  const [base, setBase] = useState(current);
  const [draft, setDraft] = useState<Tree>(current.value);
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({});
  const [conflict, setConflict] = useState<Conflict>();
  const [problem, setProblem] = useState<unknown>();
  const [isReviewing, setReviewing] = useState(false);
  const form = useRef<HTMLDivElement>(null);
  const changed = differences(base.value, draft);
  useBlocker({
    shouldBlockFn: () => changed.length > 0 && !confirm('Leave without saving? Your changes will be lost.'),
    enableBeforeUnload: changed.length > 0,
  });

  function change(path: string, value: unknown): void {
    setDraft((before) => withAt(before, path, value));
    setErrors((before) =>
      Object.fromEntries(Object.entries(before).filter(([one]) => !isAtOrInside(path, one))),
    );
  }

  function complain(found: Readonly<Record<string, string>>): void {
    flushSync(() => {
      setReviewing(false);
      setErrors(found);
    });
    const [first] = Object.keys(found);
    const row = [...(form.current?.querySelectorAll<HTMLElement>('[data-path]') ?? [])].find(
      ({ dataset }) => first !== undefined && isAtOrInside(dataset['path'] ?? '', first),
    );
    const wrong = row?.querySelector<HTMLElement>('[aria-invalid="true"]');
    (wrong ?? row?.querySelector<HTMLElement>('input, textarea, button'))?.focus();
    row?.scrollIntoView({ block: 'center' });
  }

  function review(): void {
    const mistakes = fieldsOf(sections).flatMap((field) =>
      Object.entries(mistakesIn(field, at(draft, field.path))),
    );
    if (mistakes.length > 0) return complain(Object.fromEntries(mistakes));
    setReviewing(true);
  }

  async function meet(): Promise<void> {
    setReviewing(false);
    setProblem(undefined);
    try {
      const newest = await api.read();
      const { tree, contested } = rebased(base.value, draft, newest.value);
      setConflict({ by: newest.changedBy, theirs: differences(base.value, newest.value), contested });
      setBase(newest);
      setDraft(tree);
      scrollTo({ top: 0 });
    } catch (failure) {
      setProblem(failure);
    }
  }

  function saved(now: Current): void {
    setReviewing(false);
    setConflict(undefined);
    onMade({ before: base, now });
  }

  return (
    <div ref={form}>
      {problem !== undefined && <Problem error={problem} onRetry={() => void meet()} />}
      {conflict !== undefined && (
        <Met conflict={conflict} sections={sections} onClose={() => setConflict(undefined)} />
      )}
      {sections.map((section) => (
        <Part
          key={section.title}
          section={section}
          draft={draft}
          changed={changed}
          errors={errors}
          onChange={change}
        />
      ))}
      {changed.length > 0 && (
        <div className={styles['bar']} role="region" aria-label="Unsaved changes">
          <span role="status">
            {changed.length} {changed.length === 1 ? 'setting' : 'settings'} changed, not saved
          </span>
          <Button
            variant="default"
            onClick={() => {
              setDraft(base.value);
              setErrors({});
            }}
          >
            Discard
          </Button>
          <Button onClick={review}>Review changes</Button>
        </div>
      )}
      <Modal opened={isReviewing} size="lg" title="Save these changes?" onClose={() => setReviewing(false)}>
        <Review
          api={api}
          sections={sections}
          base={base}
          next={draft}
          save={() => api.write(draft, base.etag)}
          confirm="Save for everyone"
          onSaved={saved}
          onConflict={() => void meet()}
          onMistake={(refusal) => complain(wrongFields(refusal))}
          onClose={() => setReviewing(false)}
        />
      </Modal>
    </div>
  );
}

const isAtOrInside = (path: string, one: string) => one === path || one.startsWith(`${path}.`);

type Errors = Readonly<Record<string, string>>;

function errorsInside(path: string, errors: Errors): Errors {
  const inside = Object.entries(errors).filter(([one]) => one.startsWith(`${path}.`));
  return Object.fromEntries(inside.map(([one, error]) => [one.slice(path.length + 1), error]));
}

/** Rows show the errors inside them themselves. */
function errorOf({ path, kind }: Field, errors: Errors): string | undefined {
  const hasRows = kind === 'models' || kind === 'issuers';
  return errors[path] ?? (hasRows ? undefined : Object.values(errorsInside(path, errors))[0]);
}

type PartProps = {
  readonly section: Section;
  readonly draft: Tree;
  readonly changed: readonly Difference[];
  readonly errors: Errors;
  readonly onChange: (path: string, value: unknown) => void;
};

function Part({
  section: { title, says, fields, isDense = false },
  draft,
  changed,
  errors,
  onChange,
}: PartProps) {
  const id = useId();
  return (
    <section className={styles['section']} aria-labelledby={id} data-dense={isDense}>
      <div className={styles['sectionHead']}>
        <h2 id={id}>{title}</h2>
        <p>{says}</p>
      </div>
      {fields.map((field) => (
        <FieldRow
          key={field.path}
          field={field}
          sectionId={id}
          value={at(draft, field.path)}
          isChanged={changed.some(({ path }) => path === field.path)}
          error={errorOf(field, errors)}
          errorsInside={errorsInside(field.path, errors)}
          onChange={(value) => onChange(field.path, value)}
        />
      ))}
    </section>
  );
}

type MetProps = Pick<DocumentProps, 'sections'> & {
  readonly conflict: Conflict;
  readonly onClose: () => void;
};

function Met({ conflict: { by, theirs, contested }, sections, onClose }: MetProps) {
  return (
    <Alert
      color="yellow"
      mb="lg"
      role="alert"
      title="Someone else saved changes while you edited"
      withCloseButton
      closeButtonLabel="Close"
      onClose={onClose}
    >
      <div className={common['stack']}>
        <span>
          <PersonName id={by} /> saved the changes below. Yours are applied on top of them. Review and save
          again.
        </span>
        <Differences of={theirs} sections={sections} />
        {contested.length > 0 && (
          <span>
            You both changed {contested.map((path) => nameOf(sections, path)).join('; ')}. The form shows your
            values.
          </span>
        )}
      </div>
    </Alert>
  );
}
