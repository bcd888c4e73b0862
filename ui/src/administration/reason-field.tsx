import { TextInput } from '@mantine/core';

type ReasonProps = {
  /** Who reads it. */
  readonly description: string;
  readonly placeholder: string;
  readonly isRequired?: boolean;
  /** Whether a dialog opens with the focus here. */
  readonly isFirst?: boolean;
  readonly value: string;
  readonly onChange: (reason: string) => void;
};

/** The reason why an administrator changes something of another person. */
export function ReasonField({ isRequired = false, isFirst = false, onChange, ...shown }: ReasonProps) {
  return (
    <TextInput
      label="Reason"
      {...shown}
      {...(isFirst ? { 'data-autofocus': true } : {})}
      autoComplete="off"
      maxLength={500}
      required={isRequired}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    />
  );
}
