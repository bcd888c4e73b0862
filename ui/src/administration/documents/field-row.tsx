import { Checkbox, NumberInput, SegmentedControl, Switch, TagsInput, Textarea } from '@mantine/core';
import { useId } from 'react';
import { ModelRows } from '../agents/model-rows.tsx';
import { IssuerRows } from '../policy/issuer-rows.tsx';
import styles from './documents.module.css';
import { type Field, inDays, unitFor, valueInWords } from './fields.ts';
import { SizeInput } from './size-input.tsx';

type RowProps = {
  readonly field: Field;
  readonly sectionId: string;
  readonly value: unknown;
  readonly isChanged: boolean;
  readonly error: string | undefined;
  /** Errors inside the value, by the path below the field. */
  readonly errorsInside: Readonly<Record<string, string>>;
  readonly onChange: (value: unknown) => void;
};

/** One setting: its name, its description, its default, and its value. */
export function FieldRow({ field, sectionId, value, isChanged, error, errorsInside, onChange }: RowProps) {
  const id = useId();
  const days = inDays(field, value);
  const said = {
    'aria-labelledby': `${sectionId} ${id}-label`,
    'aria-describedby': error === undefined ? `${id}-says` : `${id}-says ${id}-error`,
  };
  return (
    <div className={styles['row']} data-kind={field.kind} data-path={field.path}>
      <div>
        <span className={styles['label']}>
          <span id={`${id}-label`}>{field.label}</span>
          {isChanged && <span className={styles['changed']}>Changed</span>}
        </span>
        <p className={styles['says']} id={`${id}-says`}>
          {field.says} Default: {valueInWords(field, field.standard)}.
        </p>
        {error !== undefined && (
          <p className={styles['error']} id={`${id}-error`} role="alert">
            {error}
          </p>
        )}
      </div>
      <div className={styles['control']}>
        <Control
          field={field}
          value={value}
          said={said}
          hasError={error !== undefined}
          errorsInside={errorsInside}
          onChange={onChange}
        />
        {days !== undefined && <p className={styles['days']}>{days}</p>}
      </div>
    </div>
  );
}

type ControlProps = Pick<RowProps, 'field' | 'value' | 'errorsInside' | 'onChange'> & {
  readonly said: { readonly 'aria-labelledby': string; readonly 'aria-describedby': string };
  readonly hasError: boolean;
};

function Control({ field, value, said, hasError, errorsInside, onChange }: ControlProps) {
  switch (field.kind) {
    case 'switch':
      return (
        <Switch
          {...said}
          size="md"
          checked={value === true}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        />
      );
    case 'number':
      return (
        <NumberInput
          {...said}
          radius="md"
          hideControls
          thousandSeparator=","
          decimalScale={2}
          suffix={field.unit === undefined ? '' : ` ${unitFor(value, field.unit)}`}
          error={hasError}
          value={typeof value === 'number' ? value : ''}
          onChange={onChange}
        />
      );
    case 'bytes':
      return <SizeInput said={said} hasError={hasError} value={value} onChange={onChange} />;
    case 'numbers':
      return (
        <TagsInput
          {...said}
          radius="md"
          placeholder={`Add ${field.unit}`}
          value={stringsOf(value)}
          onChange={(texts) => onChange(numbersOf(texts))}
        />
      );
    case 'words':
      return (
        <TagsInput
          {...said}
          radius="md"
          placeholder={
            field.empty === undefined || stringsOf(value).length > 0 ? 'Add' : `Add (now: ${field.empty})`
          }
          value={stringsOf(value)}
          onChange={onChange}
        />
      );
    case 'choice':
      return (
        <SegmentedControl
          {...said}
          size="xs"
          value={String(value)}
          onChange={onChange}
          data={field.choices.map((one) => ({ value: one, label: field.labels?.[one] ?? one }))}
        />
      );
    case 'text':
      return (
        <Textarea
          {...said}
          radius="md"
          rows={5}
          maxLength={field.maxCharacters}
          error={hasError}
          value={typeof value === 'string' ? value : ''}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      );
    case 'models':
      return (
        <div {...said} role="group">
          <ModelRows value={value} errors={errorsInside} onChange={onChange} />
        </div>
      );
    case 'issuers':
      return (
        <div {...said} role="group">
          <IssuerRows bounds={field} value={value} errors={errorsInside} onChange={onChange} />
        </div>
      );
    case 'choices':
      return (
        <Checkbox.Group
          {...said}
          role="group"
          value={stringsOf(value)}
          onChange={(all) => onChange(field.choices.filter((one) => all.includes(one)))}
        >
          <div className={styles['choices']}>
            {field.choices.map((one) => (
              <Checkbox key={one} value={one} label={<code>{one}</code>} />
            ))}
          </div>
        </Checkbox.Group>
      );
  }
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function numbersOf(texts: readonly string[]): number[] {
  return [...new Set(texts.map(Number).filter((one) => one > 0))].sort((a, b) => a - b);
}
