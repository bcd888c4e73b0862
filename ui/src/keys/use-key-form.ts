import { type FormEvent, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { errorsFrom, type Field, type FieldErrors, fields } from './new/draft.ts';

type KeyForm = {
  /** Mistakes found before the request is sent. */
  readonly mistakes: () => FieldErrors;
  readonly send: () => Promise<void>;
};

/**
 * Submits a form about a key. Each mistake, found here or by the server, is shown beside its field, and the first one
 * gets the focus. Input survives every refusal.
 */
export function useKeyForm({ mistakes, send }: KeyForm) {
  const [errors, setErrors] = useState<FieldErrors>({});
  const [refusal, setRefusal] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);

  /** Clears the mistake of a field that the user changed. */
  function fix(field: Field): void {
    setErrors(({ [field]: _mended, ...others }) => others);
  }

  function complain(found: FieldErrors, problem?: unknown): void {
    // The messages have to be there before a screen reader is sent to the first of them.
    flushSync(() => {
      setErrors(found);
      setRefusal(problem);
    });
    focusFirst(form.current, found);
  }

  async function submit(): Promise<void> {
    if (isBusy) return;
    const found = mistakes();
    if (Object.keys(found).length > 0) return complain(found);
    setBusy(true);
    complain({});
    try {
      await send();
    } catch (failure) {
      const beside = errorsFrom(failure);
      complain(beside, Object.keys(beside).length > 0 ? undefined : failure);
    } finally {
      setBusy(false);
    }
  }

  function onSubmit(event: FormEvent): void {
    event.preventDefault();
    void submit();
  }

  return { form, errors, refusal, isBusy, fix, onSubmit };
}

/** Moves the focus to the first field with an error, or to the server's message about the whole form. */
function focusFirst(form: HTMLFormElement | null, found: FieldErrors): void {
  const first = fields.find((field) => found[field] !== undefined);
  const inField = (one: string) => form?.querySelector<HTMLElement>(`[data-field="${first}"] ${one}`);
  const element =
    first === undefined
      ? form?.querySelector<HTMLElement>('[role="alert"]')
      : (inField('[aria-invalid="true"]') ?? inField(':is(input, button):enabled'));
  element?.focus();
  element?.scrollIntoView({ block: 'center' });
}
