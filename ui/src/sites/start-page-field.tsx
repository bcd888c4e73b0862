import { Select } from '@mantine/core';
import { startRule } from './upload/start-rule.ts';

type FieldProps = {
  readonly pages: readonly string[];
  readonly value: string | null;
  readonly onChange: (page: string | null) => void;
};

/** Chooses the page that the address of a site without index.html shows, and says how. */
export function StartPageField({ pages, value, onChange }: FieldProps) {
  return (
    <Select
      mt="xs"
      maw="26rem"
      radius="md"
      label="Start page"
      placeholder="Choose a page"
      description={
        value === null
          ? 'The page that the site’s address leads to.'
          : `The line “${startRule(value)}” is added to the file _redirects.`
      }
      searchable
      clearable
      clearButtonProps={{ 'aria-label': 'No start page' }}
      data={[...pages]}
      value={value}
      onChange={onChange}
    />
  );
}
